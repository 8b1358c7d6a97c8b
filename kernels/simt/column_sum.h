#pragma once
// Sums over the rows of a matrix, column by column. A block takes 32 columns (or as many as it has lanes, if they are
// fewer). Its lanes form groups that divide the rows; each group adds its rows in ascending order, and the groups' sums
// are added in the order of the groups.

#include <cstdint>

#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels {

inline constexpr int kSumColumns = 32;  ///< columns of a block

/// One lane calls take(c, the sum over r of value(r, c)) for each of the block's columns. Every lane must call this
/// function.
template <class Thread, class Value, class Take>
PLUMB_SIMT void for_each_column_sum(const Thread& thread, std::int64_t rows, std::int64_t columns, const Value& value,
                                    const Take& take) {
  const int wide = thread.lanes() < kSumColumns ? thread.lanes() : kSumColumns;
  const int groups = thread.lanes() / wide;
  const std::int64_t stretches = (columns + wide - 1) / wide;
  float* shared = thread.shared();
  for (std::int64_t stretch = thread.block(); stretch < stretches; stretch += thread.blocks()) {
    const std::int64_t c = stretch * wide + thread.lane() % wide;
    float own = 0;
    for (std::int64_t row = thread.lane() / wide; row < rows && c < columns; row += groups) own += value(row, c);
    shared[thread.lane()] = own;
    thread.sync();
    if (thread.lane() < wide && c < columns) {
      float total = 0;
      for (int group = 0; group < groups; ++group) total += shared[group * wide + thread.lane()];
      take(c, total);
    }
    thread.sync();
  }
}

/// to[c] += the sum over r of value(r, c), for the block's columns. Every lane must call it. A null `to` is skipped.
template <class Thread, class Value>
PLUMB_SIMT void add_column_sums(const Thread& thread, float* to, std::int64_t rows, std::int64_t columns,
                                const Value& value) {
  if (to == nullptr) return;
  for_each_column_sum(thread, rows, columns, value, [&](std::int64_t c, float total) { to[c] += total; });
}

}}  // namespace plumb::kernels
