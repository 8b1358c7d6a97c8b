#pragma once
// Copies of some columns of a matrix's rows to those of another on a GPU, and from fp32 to the format that tensors are
// stored in.

#include "kernels/cpu/norm.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// to[r, c] = from[r, c]. to: [R, to_width], from: [R, from_width]; both pointers are at the first column to copy.
template <class S>
struct CopyColumns {
  S* to;
  const S* from;
  std::int64_t to_width;
  std::int64_t from_width;
  NormSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.rows * size.columns, [&](std::int64_t i) {
      const std::int64_t row = i / size.columns, column = i % size.columns;
      to[row * to_width + column] = from[row * from_width + column];
    });
  }
};

/// to[r, c] = from[r, c], rounded from fp32. to: [R, to_width], the pointer at the first column to write; from: [R, C]
template <class S>
struct NarrowColumns {
  S* to;
  const float* from;
  std::int64_t to_width;
  NormSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.rows * size.columns,
                     [&](std::int64_t i) { store(to[i / size.columns * to_width + i % size.columns], from[i]); });
  }
};

}}}  // namespace plumb::kernels::simt
