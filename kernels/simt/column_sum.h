#pragma once
// Sums over the rows of a matrix, column by column. A block takes 32 columns (or as many as it has lanes, if they are
// fewer). Its lanes form teams that divide the rows; each team adds its rows in ascending order, and the teams' sums are
// added in their order. A tall matrix is summed in two launches: groups of rows one by one (store_column_sum_parts),
// and then the groups' sums (ColumnSumOfParts).

#include <cstdint>

#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels {

inline constexpr int kSumColumns = 32;  ///< columns of a block

/// Divides the rows into `groups` of neighbours, as large as each other but for the last. One lane calls take(g, c, the
/// sum over the rows r of group g of value(r, c)) for each of the block's groups and columns. Every lane must call this
/// function.
template <class Thread, class Value, class Take>
PLUMB_SIMT void for_each_group_sum(const Thread& thread, std::int64_t rows, std::int64_t columns, std::int64_t groups,
                                   const Value& value, const Take& take) {
  const int wide = thread.lanes() < kSumColumns ? thread.lanes() : kSumColumns;
  const int teams = thread.lanes() / wide;
  const std::int64_t stretches = (columns + wide - 1) / wide, height = (rows + groups - 1) / groups;
  float* shared = thread.shared();
  for (std::int64_t item = thread.block(); item < stretches * groups; item += thread.blocks()) {
    const std::int64_t group = item / stretches;
    const std::int64_t c = item % stretches * wide + thread.lane() % wide;
    const std::int64_t behind = (group + 1) * height, end = behind < rows ? behind : rows;
    float own = 0;
    for (std::int64_t row = group * height + thread.lane() / wide; row < end && c < columns; row += teams)
      own += value(row, c);
    shared[thread.lane()] = own;
    thread.sync();
    if (thread.lane() < wide && c < columns) {
      float total = 0;
      for (int team = 0; team < teams; ++team) total += shared[team * wide + thread.lane()];
      take(group, c, total);
    }
    thread.sync();
  }
}

/// One lane calls take(c, the sum over r of value(r, c)) for each of the block's columns.
template <class Thread, class Value, class Take>
PLUMB_SIMT void for_each_column_sum(const Thread& thread, std::int64_t rows, std::int64_t columns, const Value& value,
                                    const Take& take) {
  for_each_group_sum(thread, rows, columns, 1, value, [&](std::int64_t, std::int64_t c, float sum) { take(c, sum); });
}

/// parts[g, c] = the sum over the rows r of group g of value(r, c). A null `parts` is skipped. parts: [groups, columns]
template <class Thread, class Value>
PLUMB_SIMT void store_column_sum_parts(const Thread& thread, float* parts, std::int64_t rows, std::int64_t columns,
                                       std::int64_t groups, const Value& value) {
  if (parts == nullptr) return;
  for_each_group_sum(thread, rows, columns, groups, value,
                     [&](std::int64_t group, std::int64_t c, float sum) { parts[group * columns + c] = sum; });
}

/// to[c] += the sum over r of value(r, c), for the block's columns. Every lane must call it. A null `to` is skipped.
template <class Thread, class Value>
PLUMB_SIMT void add_column_sums(const Thread& thread, float* to, std::int64_t rows, std::int64_t columns,
                                const Value& value) {
  if (to == nullptr) return;
  for_each_column_sum(thread, rows, columns, value, [&](std::int64_t c, float total) { to[c] += total; });
}

namespace simt {

/// to[c] += the sum over g of parts[g, c]. parts: [groups, columns]; to: [columns]
struct ColumnSumOfParts {
  float* to;  ///< null: nothing
  const float* parts;
  std::int64_t groups;
  std::int64_t columns;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    add_column_sums(thread, to, groups, columns,
                    [&](std::int64_t group, std::int64_t c) { return parts[group * columns + c]; });
  }
};

}  // namespace simt

}}  // namespace plumb::kernels
