#pragma once
// KernelKind kSquaredError.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// Sum over the rows of mean((y - target)^2); y := gradient_scale times the gradient of that sum. y, targets: [R, C]
double squared_error(float* y, const float* targets, std::int64_t rows, std::int64_t columns, float gradient_scale);

}}  // namespace plumb::kernels
