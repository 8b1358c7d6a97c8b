#pragma once
// The memory that a norm's kernels cross, in reads and writes of its input.

#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Forward: the input is read and the output written. In fp32 each of the two crosses twice as many bytes, and casts
/// before and behind read and write them once more: 3 + 4 + 3.
inline double norm_forward_crossings(const StackSpec& stack) {
  return stack.fp32_norms ? 10 : 2;
}

/// Backward: one kernel reads input and gradient and writes the input's gradient, another reads both for those of the
/// weights. In fp32: 3 + 10 + 3.
inline double norm_backward_crossings(const StackSpec& stack) {
  return stack.fp32_norms ? 16 : 5;
}

}}  // namespace plumb::planner
