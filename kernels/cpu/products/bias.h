#pragma once
// The bias of a linear layer. KernelKind kBiasForward and kBiasBackward.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// y[r,c] += bias[c]. y: [rows, columns]; bias: [columns]
void bias_forward(float* y, const float* bias, std::int64_t rows, std::int64_t columns);

/// dbias[c] += sum over r of dy[r,c], r ascending. dy: [rows, columns]; dbias: [columns]
void bias_backward(float* dbias, const float* dy, std::int64_t rows, std::int64_t columns);

}}  // namespace plumb::kernels
