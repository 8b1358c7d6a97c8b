#include "kernels/simt/state_spaces/gated_norm.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_norm(const GatedNormSize& size) {
  constexpr float kEpsilon = 1e-5F;
  std::vector<S> own_z = stored<S>(random_values(size.rows * size.stride, 1));
  const std::vector<S> own_y = stored<S>(random_values(size.rows * size.columns, 2));
  std::vector<S> own_dout = stored<S>(random_values(size.rows * size.columns, 3));
  const Values y = widened_all(own_y), gain = random_values(size.columns, 4);
  Values z = widened_all(own_z), dy = widened_all(own_dout), out(y.size());
  Values rstd(static_cast<std::size_t>(size.rows * size.groups)), own_rstd = rstd;
  Values dgain = random_values(size.columns, 5), own_dgain = dgain;
  std::vector<S> own_out(own_y.size());
  gated_norm_forward(out.data(), rstd.data(), y.data(), z.data(), gain.data(), size, kEpsilon);
  run_on_host(simt::GatedNormForward<S>{own_out.data(), own_rstd.data(), own_y.data(), own_z.data(), gain.data(), size,
                                        kEpsilon},
              kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_out), out) < tolerance<S>());
  CHECK(relative_difference(own_rstd, rstd) < kFloatTolerance);

  gated_norm_backward(dy.data(), z.data(), dgain.data(), dy.data(), y.data(), rstd.data(), gain.data(), size);
  run_on_host(
      simt::GatedNormGain<S>{own_dgain.data(), own_dout.data(), own_y.data(), own_z.data(), own_rstd.data(), size},
      kBlocks, kLanes);
  run_on_host(simt::GatedNormBackward<S>{own_dout.data(), own_z.data(), own_dout.data(), own_y.data(), own_rstd.data(),
                                         gain.data(), size},
              kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_dout), dy) < tolerance<S>());
  CHECK(relative_difference(widened_all(own_z), z) < tolerance<S>());
  CHECK(relative_difference(own_dgain, dgain) < tolerance<S>());
}

}  // namespace

TEST_CASE("a GPU's gated norm and its gradients agree with the CPU's, also in place") {
  for (const GatedNormSize size : {GatedNormSize{.rows = 5, .columns = 12, .groups = 2, .stride = 20},
                                   GatedNormSize{.rows = 3, .columns = 200, .groups = 1, .stride = 200},
                                   GatedNormSize{.rows = 1, .columns = 3, .groups = 3, .stride = 4}}) {
    check_norm<float>(size);
    check_norm<Bf16>(size);
    check_norm<Fp16>(size);
  }
}

}  // namespace plumb::test
