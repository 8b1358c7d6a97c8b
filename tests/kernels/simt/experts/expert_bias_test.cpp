#include "kernels/simt/experts/expert_bias.h"

#include <doctest/doctest.h>

#include "kernels/cpu/products/bias.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE_TEMPLATE("GPU biases of experts agree with the CPU's of each, and rows of none are left", S, float, Bf16,
                   Fp16) {
  constexpr std::int64_t kRows = 14, kColumns = 37;
  const std::vector<std::int32_t> bounds = {0, 5, 5, 6, 12};  // the second expert has no rows, and two rows none
  const ExpertRows rows{.bounds = bounds.data(), .rows = kRows, .experts = 4};
  const std::vector<S> biases = stored<S>(random_values(4 * kColumns, 1));
  std::vector<S> y = stored<S>(random_values(kRows * kColumns, 2));
  Values expected = widened_all(y), expected_sums = random_values(4 * kColumns, 3), sums = expected_sums;
  const Values wide_biases = widened_all(biases), dy = expected;
  for (std::size_t expert = 0; expert < 4; ++expert) {
    const std::int64_t first = bounds[expert] * kColumns, count = bounds[expert + 1] - bounds[expert];
    const auto own = static_cast<std::int64_t>(expert) * kColumns;
    bias_backward(expected_sums.data() + own, dy.data() + first, count, kColumns);
    bias_forward(expected.data() + first, wide_biases.data() + own, count, kColumns);
  }
  run_on_host(simt::ExpertBiasBackward<S>{sums.data(), y.data(), rows, kColumns}, kBlocks, kLanes);
  run_on_host(simt::ExpertBiasForward<S>{y.data(), biases.data(), rows, kColumns}, kBlocks, kLanes);
  CHECK(relative_difference(sums, expected_sums) < kFloatTolerance);
  CHECK(relative_difference(widened_all(y), expected) < tolerance<S>());
}

}  // namespace plumb::test
