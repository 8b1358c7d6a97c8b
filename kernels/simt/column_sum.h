#pragma once
// Sums over the rows of a matrix, column by column. A block takes 32 columns (or as many as it has lanes, if they are
// fewer). Its lanes form teams that divide the rows; each team adds its rows in ascending order, and the teams' sums are
// added in their order. A tall matrix is summed in two launches: groups of rows one by one (for_each_group_sum),
// and then the groups' sums (ColumnSumOfParts).

#include <cstdint>

#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels {

inline constexpr int kSumColumns = 32;  ///< columns of a block

struct RowRange {
  std::int64_t begin, end;
};

/// Computes kSums sums over the rows of each of some ranges: add(sums, r, c) adds what row r has in column c. One lane
/// calls take(g, c, sums) for each of the block's ranges and columns. range_of(g) returns range number g. Every lane must
/// call this function.
template <int kSums, class Thread, class RangeOf, class AddRow, class Take>
PLUMB_SIMT void for_each_range_sum(const Thread& thread, std::int64_t columns, std::int64_t ranges,
                                   const RangeOf& range_of, const AddRow& add, const Take& take) {
  const int wide = thread.lanes() < kSumColumns ? thread.lanes() : kSumColumns;
  const int teams = thread.lanes() / wide;
  const std::int64_t stretches = (columns + wide - 1) / wide;
  float* shared = thread.shared();
  for (std::int64_t item = thread.block(); item < stretches * ranges; item += thread.blocks()) {
    const RowRange range = range_of(item / stretches);
    const std::int64_t c = item % stretches * wide + thread.lane() % wide;
    const std::int64_t end = c < columns ? range.end : range.begin;
    float sums[kSums] = {};
    constexpr int kAtOnce = 4;  // rows that are on their way at a time
    std::int64_t row = range.begin + thread.lane() / wide;
    for (; row + (kAtOnce - 1) * teams < end; row += kAtOnce * teams)
      for (int i = 0; i < kAtOnce; ++i) add(sums, row + i * teams, c);
    for (; row < end; row += teams) add(sums, row, c);
    for (float& sum : sums) {
      shared[thread.lane()] = sum;
      thread.sync();
      sum = 0;
      if (thread.lane() < wide)
        for (int team = 0; team < teams; ++team) sum += shared[team * wide + thread.lane()];
      thread.sync();
    }
    if (thread.lane() < wide && c < columns) take(item / stretches, c, sums);
  }
}

/// Divides the rows into `groups` of neighbours, as large as each other but for the last, and computes their sums.
template <int kSums, class Thread, class AddRow, class Take>
PLUMB_SIMT void for_each_group_sum(const Thread& thread, std::int64_t rows, std::int64_t columns, std::int64_t groups,
                                   const AddRow& add, const Take& take) {
  const std::int64_t height = (rows + groups - 1) / groups;
  for_each_range_sum<kSums>(
      thread, columns, groups,
      [&](std::int64_t group) {
        const std::int64_t end = (group + 1) * height;
        return RowRange{group * height, end < rows ? end : rows};
      },
      add, take);
}

/// One lane calls take(c, the sum over r of value(r, c)) for each of the block's columns.
template <class Thread, class Value, class Take>
PLUMB_SIMT void for_each_column_sum(const Thread& thread, std::int64_t rows, std::int64_t columns, const Value& value,
                                    const Take& take) {
  for_each_group_sum<1>(
      thread, rows, columns, 1, [&](float(&sums)[1], std::int64_t row, std::int64_t c) { sums[0] += value(row, c); },
      [&](std::int64_t, std::int64_t c, const float(&sums)[1]) { take(c, sums[0]); });
}

namespace simt {

/// to[c] += the sum over g of parts[g, c], and other[c] += that of parts[g, C + c]. to, other: [C]; parts: [groups,
/// 2C], or [groups, C] without `other`
struct ColumnSumOfParts {
  float* to;
  float* other;  ///< null: none
  const float* parts;
  std::int64_t groups;
  std::int64_t columns;  ///< C

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t width = other == nullptr ? columns : 2 * columns;
    for_each_column_sum(
        thread, groups, width, [&](std::int64_t group, std::int64_t c) { return parts[group * width + c]; },
        [&](std::int64_t c, float sum) { (c < columns ? to[c] : other[c - columns]) += sum; });
  }
};

}  // namespace simt

}}  // namespace plumb::kernels
