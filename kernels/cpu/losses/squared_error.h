#pragma once
// The squared error, loss and gradient in one pass. KernelKind kSquaredError.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// Returns the sum over the rows of mean((y - target)^2). Replaces y by gradient_scale times the gradient of that sum.
/// y, targets: [R, C]
double squared_error(float* y, const float* targets, std::int64_t rows, std::int64_t columns, float gradient_scale);

}}  // namespace plumb::kernels
