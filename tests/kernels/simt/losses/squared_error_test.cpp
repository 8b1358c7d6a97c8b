#include "kernels/simt/losses/squared_error.h"

#include <doctest/doctest.h>

#include <numeric>

#include "kernels/cpu/losses/squared_error.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_squared_error(const float* loss_scale) {
  constexpr std::int64_t kRows = 5, kColumns = 71;
  constexpr float kScale = 0.25F;
  std::vector<S> own = stored<S>(random_values(kRows * kColumns, 1));
  const Values targets = random_values(kRows * kColumns, 2);
  Values y = widened_all(own);
  const double loss =
      squared_error(y.data(), targets.data(), kRows, kColumns, loss_scale == nullptr ? kScale : kScale * *loss_scale);
  Values losses(kRows);
  run_on_host(simt::SquaredError<S>{losses.data(), own.data(), targets.data(), kRows, kColumns, kScale, loss_scale},
              kBlocks, kLanes);
  CHECK(std::accumulate(losses.begin(), losses.end(), 0.0) == doctest::Approx(loss).epsilon(1e-5));
  CHECK(relative_difference(widened_all(own), y) < tolerance<S>());
}

}  // namespace

TEST_CASE("GPU squared errors and their gradients agree with the CPU's, with a loss scale and without") {
  const float scale = 8;
  for (const float* loss_scale : {static_cast<const float*>(nullptr), &scale}) {
    check_squared_error<float>(loss_scale);
    check_squared_error<Bf16>(loss_scale);
    check_squared_error<Fp16>(loss_scale);
  }
}

}  // namespace plumb::test
