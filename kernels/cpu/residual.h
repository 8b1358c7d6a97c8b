#pragma once
// The residual connection. KernelKind kResidualAdd.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// z = x + y; z may be the same memory as x or y. x, y, z: [rows, columns]
void residual_add(float* z, const float* x, const float* y, std::int64_t rows, std::int64_t columns);

}}  // namespace plumb::kernels
