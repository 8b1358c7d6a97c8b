#pragma once
// The bytes that one element of each sort of tensor takes, or moves, under a framework.

#include "planner/price/kernel/kernel_price.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Bytes of one element.
struct ElementBytes {
  double activation = 2;
  double gathered = 2;      ///< of a tensor that a tensor group gathers: fewer if quantized before
  double gradient = 4;      ///< of the buffer where weight gradients accumulate
  double accumulated = 10;  ///< moved by kernels of their own that add a weight's gradient to that buffer
  double cast = 0;          ///< moved to quantize one; 0: nothing is quantized
};

/// Returns the bytes of elements in the precisions of `kernels` under the stack. A gradient that stays beside the
/// buffer (StackSpec::copied_gradient_bytes) is first written again in the buffer's precision, as in DeepSpeed's
/// BF16_Optimizer: hp_grad.add_(lp.grad.to(hp_grad.dtype)).
ElementBytes element_bytes(const KernelPrices& kernels, const StackSpec& stack);

}}  // namespace plumb::planner
