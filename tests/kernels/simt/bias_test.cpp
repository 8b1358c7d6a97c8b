#include "kernels/simt/bias.h"

#include <doctest/doctest.h>

#include "kernels/cpu/products/bias.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_bias() {
  constexpr std::int64_t kRows = 13, kColumns = 75;
  const Values bias = random_values(kColumns, 1);
  std::vector<S> y = stored<S>(random_values(kRows * kColumns, 2));
  Values expected = widened_all(y);
  bias_forward(expected.data(), bias.data(), kRows, kColumns);
  run_on_host(simt::BiasForward<S>{y.data(), bias.data(), kRows, kColumns}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(y), expected) < tolerance<S>());
  Values dbias = bias, own_dbias = bias;
  bias_backward(dbias.data(), widened_all(y).data(), kRows, kColumns);
  for (const std::int64_t groups : {1, 4, 5}) {  // 13 rows are not divided evenly
    Values parts(static_cast<std::size_t>(groups * kColumns)), sums = own_dbias;
    run_on_host(simt::BiasParts<S>{parts.data(), y.data(), kRows, kColumns, groups}, kBlocks, kLanes);
    run_on_host(simt::ColumnSumOfParts{sums.data(), nullptr, parts.data(), groups, kColumns}, kBlocks, kLanes);
    CHECK(relative_difference(sums, dbias) < kFloatTolerance);
  }
}

}  // namespace

TEST_CASE("GPU biases agree with the CPU's") {
  check_bias<float>();
  check_bias<Bf16>();
  check_bias<Fp16>();
}

}  // namespace plumb::test
