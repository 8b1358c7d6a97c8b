#pragma once
// RMSNorm and LayerNorm over the channels of each row. KernelKind kNormForward and kNormBackward. The backward adds the
// norm's gradient to the gradient that reaches its input by the residual, so that a block needs no extra addition;
// there `dx` may be the same memory as `x` or `residual_gradient`.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct NormSize {
  std::int64_t rows = 0;     ///< R
  std::int64_t columns = 0;  ///< C
};

/// y = x * rstd * gain, rstd = 1/sqrt(mean(x^2) + epsilon) (Zhang & Sennrich 2019).
/// x, y: [R, C]; gain: [C]; rstd: [R]
void rms_norm_forward(float* y, float* rstd, const float* x, const float* gain, const NormSize& size, float epsilon);

/// dx = residual_gradient + the norm's gradient; dgain += column sums. A null residual_gradient counts as zeros.
/// dx, dy, x, residual_gradient: [R, C]; gain, dgain: [C]; rstd: [R]
void rms_norm_backward(float* dx, float* dgain, const float* dy, const float* residual_gradient, const float* x,
                       const float* rstd, const float* gain, const NormSize& size);

/// y = (x - mean) * rstd * gain + bias (Ba et al. 2016).
/// x, y: [R, C]; gain, bias: [C]; mean, rstd: [R]
void layer_norm_forward(float* y, float* mean, float* rstd, const float* x, const float* gain, const float* bias,
                        const NormSize& size, float epsilon);

/// dx = residual_gradient + the norm's gradient; dgain and dbias += column sums. A null residual_gradient counts as
/// zeros. dx, dy, x, residual_gradient: [R, C]; gain, dgain, dbias: [C]; mean, rstd: [R]
void layer_norm_backward(float* dx, float* dgain, float* dbias, const float* dy, const float* residual_gradient,
                         const float* x, const float* mean, const float* rstd, const float* gain, const NormSize& size);

}}  // namespace plumb::kernels
