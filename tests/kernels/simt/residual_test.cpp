#include "kernels/simt/residual.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE_TEMPLATE("GPU residual addition with and without a bias, in place of either", S, float, Bf16, Fp16) {
  constexpr std::int64_t kRows = 5, kColumns = 37;
  const std::vector<S> x = stored<S>(random_values(kRows * kColumns, 1)),
                       y = stored<S>(random_values(kRows * kColumns, 2));
  const Values bias = random_values(kColumns, 3);
  for (const bool with_bias : {false, true}) {
    Values expected = widened_all(x);
    for (std::int64_t i = 0; i < kRows * kColumns; ++i)
      expected[i] += widened(y[i]) + (with_bias ? bias[i % kColumns] : 0.0F);
    std::vector<S> over_x = x, over_y = y;
    run_on_host(simt::ResidualAdd<S>{over_x.data(), over_x.data(), y.data(), with_bias ? bias.data() : nullptr, kRows,
                                     kColumns},
                kBlocks, kLanes);
    run_on_host(simt::ResidualAdd<S>{over_y.data(), x.data(), over_y.data(), with_bias ? bias.data() : nullptr, kRows,
                                     kColumns},
                kBlocks, kLanes);
    CHECK(widened_all(over_x) == widened_all(stored<S>(expected)));
    CHECK(widened_all(over_y) == widened_all(over_x));
  }
}

}  // namespace plumb::test
