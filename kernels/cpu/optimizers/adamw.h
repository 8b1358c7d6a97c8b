#pragma once
// One AdamW update of one tensor. KernelKind kAdamW.

#include <cstdint>

#include "kernels/optimizer.h"

namespace plumb { inline namespace kernels {

/// m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, w -= lr (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + decay w), g = 0, with t
/// = `step`, counted from 1 (Loshchilov & Hutter 2019). `optimizer.weight_decay` is applied as it is, so the caller
/// sets 0 for one-dimensional tensors. parameters, gradients, first_moment, second_moment: [elements]
void adamw_update(float* parameters, float* gradients, float* first_moment, float* second_moment, std::int64_t elements,
                  const AdamW& optimizer, std::int64_t step);

}}  // namespace plumb::kernels
