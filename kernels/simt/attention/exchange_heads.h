#pragma once
// The copies around an all-to-all of attention heads (Ulysses; Jacobs et al. 2023). They turn the columns of rows into
// a block of each member's heads and back, and blocks of members' tokens into whole sequences.

#include <cstdint>

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels {

/// Rows whose columns are queries, keys and values, or one of these; every member has an equal share of each.
struct HeadShares {
  std::int64_t rows = 0;       ///< T
  std::int64_t parts[3] = {};  ///< columns of each part
  std::int64_t members = 1;    ///< number of members, which divides each part

  PLUMB_SIMT std::int64_t width() const { return parts[0] + parts[1] + parts[2]; }

  /// Returns the element of [T, width] that element `i` of [members, T, width / members] corresponds to.
  PLUMB_SIMT std::int64_t element_of_rows(std::int64_t i) const {
    const std::int64_t share = width() / members;
    const std::int64_t member = i / (rows * share), row = i / share % rows;
    std::int64_t inside = i % share, column = row * width();
    for (int part = 0; part < 3; ++part) {
      const std::int64_t own = parts[part] / members;
      if (inside < own) return column + member * own + inside;
      inside -= own;
      column += parts[part];
    }
    return column;
  }
};

/// The size of a matrix of stretches of elements; a stretch lies together.
struct BlockMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t elements = 0;  ///< elements of a stretch
};

}}  // namespace plumb::kernels

namespace plumb { inline namespace kernels { namespace simt {

/// Cuts rows into a block of each member's heads; JoinHeads does the reverse. blocks: [members, T, width / members],
/// rows: [T, width]
template <class S>
struct SplitHeads {
  S* blocks;
  const S* rows;
  HeadShares size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.rows * size.width(),
                     [&](std::int64_t i) { blocks[i] = rows[size.element_of_rows(i)]; });
  }
};

template <class S>
struct JoinHeads {
  S* rows;
  const S* blocks;
  HeadShares size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.rows * size.width(),
                     [&](std::int64_t i) { rows[size.element_of_rows(i)] = blocks[i]; });
  }
};

/// Exchanges rows and columns of stretches. to: [columns, rows, elements], from: [rows, columns, elements]
template <class S>
struct TransposeBlocks {
  S* to;
  const S* from;
  BlockMatrix size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.rows * size.columns * size.elements, [&](std::int64_t i) {
      const std::int64_t stretch = i / size.elements;
      const std::int64_t row = stretch / size.columns, column = stretch % size.columns;
      to[(column * size.rows + row) * size.elements + i % size.elements] = from[i];
    });
  }
};

}}}  // namespace plumb::kernels::simt
