#include "kernels/simt/norm.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_norms(bool rms, bool with_residual) {
  constexpr NormSize kSize{.rows = 7, .columns = 147};
  constexpr std::int64_t kElements = kSize.rows * kSize.columns;
  constexpr float kEpsilon = 1e-5F;
  const std::vector<S> x = stored<S>(random_values(kElements, 1, 3.0F)),
                       residual = stored<S>(random_values(kElements, 2));
  const Values gain = random_values(kSize.columns, 3), bias = random_values(kSize.columns, 4);
  Values sum = widened_all(x);
  if (with_residual) {
    const Values past = widened_all(residual);
    for (std::int64_t i = 0; i < kElements; ++i) sum[i] += past[i];
  }
  const Values input = widened_all(stored<S>(sum));
  Values y(kElements), mean(kSize.rows), rstd(kSize.rows);
  if (rms)
    rms_norm_forward(y.data(), rstd.data(), input.data(), gain.data(), kSize, kEpsilon);
  else
    layer_norm_forward(y.data(), mean.data(), rstd.data(), input.data(), gain.data(), bias.data(), kSize, kEpsilon);

  std::vector<S> own_y(kElements), own_sum(kElements);
  Values own_mean(kSize.rows), own_rstd(kSize.rows);
  run_on_host(simt::NormForward<S>{.y = own_y.data(),
                                   .sum = own_sum.data(),
                                   .mean = rms ? nullptr : own_mean.data(),
                                   .rstd = own_rstd.data(),
                                   .x = x.data(),
                                   .residual = with_residual ? residual.data() : nullptr,
                                   .gain = gain.data(),
                                   .bias = rms ? nullptr : bias.data(),
                                   .size = kSize,
                                   .epsilon = kEpsilon},
              kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_y), y) < tolerance<S>());
  CHECK(relative_difference(own_rstd, rstd) < kFloatTolerance);
  if (!rms) CHECK(relative_difference(own_mean, mean) < kFloatTolerance);
  if (with_residual) CHECK(widened_all(own_sum) == input);

  const std::vector<S> dy = stored<S>(random_values(kElements, 5));
  Values dx(kElements), dgain = random_values(kSize.columns, 6), dbias = random_values(kSize.columns, 7);
  Values own_dgain = dgain, own_dbias = dbias;
  const Values past = widened_all(residual);
  if (rms) {
    rms_norm_backward(dx.data(), dgain.data(), widened_all(dy).data(), with_residual ? past.data() : nullptr,
                      input.data(), rstd.data(), gain.data(), kSize);
  } else {
    layer_norm_backward(dx.data(), dgain.data(), dbias.data(), widened_all(dy).data(),
                        with_residual ? past.data() : nullptr, input.data(), mean.data(), rstd.data(), gain.data(),
                        kSize);
  }
  const std::vector<S> stored_input = stored<S>(input);
  std::vector<S> own_dx = dy;  // in place
  run_on_host(simt::NormBackward<S>{.dx = own_dx.data(),
                                    .dy = own_dx.data(),
                                    .residual_gradient = with_residual ? residual.data() : nullptr,
                                    .x = stored_input.data(),
                                    .mean = rms ? nullptr : mean.data(),
                                    .rstd = rstd.data(),
                                    .gain = gain.data(),
                                    .size = kSize},
              kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_dx), dx) < tolerance<S>());
  constexpr std::int64_t kGroups = 3;
  Values parts(kGroups * 2 * kSize.columns);
  run_on_host(simt::NormParameterParts<S>{.parts = parts.data(),
                                          .dy = dy.data(),
                                          .x = stored_input.data(),
                                          .mean = rms ? nullptr : mean.data(),
                                          .rstd = rstd.data(),
                                          .size = kSize,
                                          .groups = kGroups},
              kBlocks, kLanes);
  run_on_host(
      simt::ColumnSumOfParts{own_dgain.data(), rms ? nullptr : own_dbias.data(), parts.data(), kGroups, kSize.columns},
      kBlocks, kLanes);
  CHECK(relative_difference(own_dgain, dgain) < kFloatTolerance);
  CHECK(relative_difference(own_dbias, dbias) < kFloatTolerance);
}

}  // namespace

TEST_CASE("GPU norms agree with the CPU's") {
  for (const bool rms : {false, true}) {
    for (const bool with_residual : {false, true}) {
      CAPTURE(rms);
      CAPTURE(with_residual);
      check_norms<float>(rms, with_residual);
      check_norms<Bf16>(rms, with_residual);
      check_norms<Fp16>(rms, with_residual);
    }
  }
}

TEST_CASE("GPU kernels compute the same bits with any number of blocks") {
  constexpr NormSize kSize{.rows = 9, .columns = 70};
  const Values x = random_values(kSize.rows * kSize.columns, 1), dy = random_values(kSize.rows * kSize.columns, 2);
  const Values rstd = random_values(kSize.rows, 3), gain = random_values(kSize.columns, 4);
  const auto gradients = [&](int blocks) {
    constexpr std::int64_t kGroups = 2;
    Values dx(x.size()), parts(kGroups * kSize.columns), dgain(kSize.columns, 0.0F);
    run_on_host(
        simt::NormBackward<float>{dx.data(), dy.data(), nullptr, x.data(), nullptr, rstd.data(), gain.data(), kSize},
        blocks, kLanes);
    run_on_host(
        simt::NormParameterParts<float>{parts.data(), dy.data(), x.data(), nullptr, rstd.data(), kSize, kGroups},
        blocks, kLanes);
    run_on_host(simt::ColumnSumOfParts{dgain.data(), nullptr, parts.data(), kGroups, kSize.columns}, blocks, kLanes);
    dx.insert(dx.end(), dgain.begin(), dgain.end());
    return dx;
  };
  const Values one = gradients(1);
  CHECK(gradients(2) == one);
  CHECK(gradients(20) == one);
}

}  // namespace plumb::test
