#pragma once
// Sums over the rows of a matrix, column by column. A block takes 32 columns (as many as it has lanes, if they are
// fewer); its lanes are groups of rows over them, each in ascending order, added up in the order of the groups.

#include <cstdint>

#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels {

inline constexpr int kSumColumns = 32;  ///< of a block

/// take(c, the sum over r of value(r, c)) for the block's columns, by one lane; every lane calls.
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

/// to[c] += the sum over r of value(r, c), for the block's columns; every lane calls. `to` null: nothing.
template <class Thread, class Value>
PLUMB_SIMT void add_column_sums(const Thread& thread, float* to, std::int64_t rows, std::int64_t columns,
                                const Value& value) {
  if (to == nullptr) return;
  for_each_column_sum(thread, rows, columns, value, [&](std::int64_t c, float total) { to[c] += total; });
}

}}  // namespace plumb::kernels
