#include "kernels/simt/copy_columns.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE("GPU copies columns between rows of two widths, and touches no others") {
  constexpr std::int64_t kRows = 19, kColumns = 7, kTo = 11, kFrom = 9;
  const Values from = random_values(kRows * kFrom, 1), before = random_values(kRows * kTo, 2);
  Values to = before;
  run_on_host(simt::CopyColumns<float>{to.data() + 3, from.data() + 2, kTo, kFrom, {kRows, kColumns}}, kBlocks, kLanes);
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t column = 0; column < kTo; ++column) {
      const bool is_copied = column >= 3 && column < 3 + kColumns;
      const auto at = static_cast<std::size_t>(row * kTo + column);
      CHECK(to[at] == (is_copied ? from[static_cast<std::size_t>(row * kFrom + column - 3 + 2)] : before[at]));
    }
}

TEST_CASE_TEMPLATE("GPU stores fp32 columns in wider rows", S, float, Bf16) {
  constexpr std::int64_t kRows = 13, kColumns = 5, kTo = 8;
  const Values from = random_values(kRows * kColumns, 3), before = random_values(kRows * kTo, 4);
  std::vector<S> to = stored<S>(before);
  run_on_host(simt::NarrowColumns<S>{to.data() + 2, from.data(), kTo, {kRows, kColumns}}, kBlocks, kLanes);
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t column = 0; column < kTo; ++column) {
      const auto at = static_cast<std::size_t>(row * kTo + column);
      const bool is_copied = column >= 2 && column < 2 + kColumns;
      S expected;
      store(expected, is_copied ? from[static_cast<std::size_t>(row * kColumns + column - 2)] : before[at]);
      CHECK(widened(to[at]) == widened(expected));
    }
}

}  // namespace plumb::test
