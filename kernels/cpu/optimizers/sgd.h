#pragma once
// One update of one tensor by gradient descent with momentum.

#include <cstdint>

#include "kernels/optimizer.h"

namespace plumb { inline namespace kernels {

/// m = momentum m + g + decay w, w -= lr m, g = 0 (Sutskever et al. 2013, in PyTorch's form). `optimizer.weight_decay`
/// is applied as it is. parameters, gradients, momentum: [elements]
void sgd_update(float* parameters, float* gradients, float* momentum, std::int64_t elements, const Sgd& optimizer);

}}  // namespace plumb::kernels
