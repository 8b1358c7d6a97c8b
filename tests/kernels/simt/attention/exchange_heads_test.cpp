#include "kernels/simt/attention/exchange_heads.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE_TEMPLATE("heads of rows become blocks of members, column by column, and rows again", S, float, Bf16) {
  const HeadShares size{.rows = 7, .parts = {12, 6, 6}, .members = 3};
  const std::int64_t width = size.width(), share = width / size.members;
  const std::vector<S> rows = stored<S>(random_values(size.rows * width, 1));
  std::vector<S> blocks(rows.size()), back(rows.size());
  run_on_host(simt::SplitHeads<S>{blocks.data(), rows.data(), size}, kBlocks, kLanes);
  for (std::int64_t member = 0; member < size.members; ++member)
    for (std::int64_t row = 0; row < size.rows; ++row) {
      const auto* block = blocks.data() + (member * size.rows + row) * share;
      std::int64_t column = 0;
      for (const std::int64_t part : size.parts) {
        const std::int64_t own = part / size.members;
        for (std::int64_t c = 0; c < own; ++c)
          CHECK(widened(*block++) == widened(rows[static_cast<std::size_t>(row * width + column + member * own + c)]));
        column += part;
      }
    }
  run_on_host(simt::JoinHeads<S>{back.data(), blocks.data(), size}, kBlocks, kLanes);
  CHECK(widened_all(back) == widened_all(rows));
}

TEST_CASE("blocks of tokens change places, and back") {
  const BlockMatrix size{.rows = 3, .columns = 5, .elements = 7};
  const Values from = random_values(3 * 5 * 7, 2);
  Values to(from.size()), back(from.size());
  run_on_host(simt::TransposeBlocks<float>{to.data(), from.data(), size}, kBlocks, kLanes);
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 5; ++column)
      for (std::size_t i = 0; i < 7; ++i) CHECK(to[(column * 3 + row) * 7 + i] == from[(row * 5 + column) * 7 + i]);
  run_on_host(simt::TransposeBlocks<float>{back.data(), to.data(), {5, 3, 7}}, kBlocks, kLanes);
  CHECK(back == from);
}

}  // namespace plumb::test
