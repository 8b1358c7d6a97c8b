#pragma once
// Zeroing, and widening of 16-bit numbers to fp32, on a GPU.

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// to = 0. to: [elements]
struct FillZero {
  float* to;
  std::int64_t elements;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, elements, [&](std::int64_t i) { to[i] = 0.0F; });
  }
};

/// to = from, widened. to, from: [elements]
template <class S>
struct Widen {
  float* to;
  const S* from;
  std::int64_t elements;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, elements, [&](std::int64_t i) { to[i] = widened(from[i]); });
  }
};

}}}  // namespace plumb::kernels::simt
