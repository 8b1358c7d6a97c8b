#pragma once
// Some columns of a matrix's rows to those of another on a GPU, or from fp32 to how tensors are stored.

#include "kernels/cpu/norm.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// to[r, c] = from[r, c]. to: [R, to_width], from: [R, from_width], each from its first column to copy on.
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

/// to[r, c] = from[r, c], which is in fp32. to: [R, to_width], from its first column to write on; from: [R, C]
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
