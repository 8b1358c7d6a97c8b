#pragma once
// One Lion update of one tensor.

#include <cstdint>

#include "kernels/optimizer.h"

namespace plumb { inline namespace kernels {

/// w -= lr (sign(b1 m + (1-b1) g) + decay w), m = b2 m + (1-b2) g, g = 0, where the sign of 0 is 0 (Chen et al. 2023,
/// algorithm 2). `optimizer.weight_decay` is applied as it is. parameters, gradients, momentum: [elements]
void lion_update(float* parameters, float* gradients, float* momentum, std::int64_t elements, const Lion& optimizer);

}}  // namespace plumb::kernels
