#pragma once
// The norm behind a state space (Dao & Gu 2024, section 7): RMS norm of y * silu(z), over each group of the channels by
// itself. KernelKind kGatedNormForward and kGatedNormBackward.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct GatedNormSize {
  std::int64_t rows = 0;     ///< T
  std::int64_t columns = 0;  ///< C
  std::int64_t groups = 1;   ///< G, which divides C
  std::int64_t stride = 0;   ///< elements from one row of z to the next: z's columns may be the first of wider rows
};

/// out = u * rstd * gain, u = y * silu(z), rstd = 1/sqrt(mean of u^2 over the group + epsilon).
/// out, y: [T, C]; rstd: [T, G]; z: [T, stride]; gain: [C]
void gated_norm_forward(float* out, float* rstd, const float* y, const float* z, const float* gain,
                        const GatedNormSize& size, float epsilon);

/// Writes y's gradient to dy, which may be the memory of dout, and replaces z by its gradient; dgain += column sums.
/// dy, dout, y: [T, C]; z: [T, stride]; gain, dgain: [C]; rstd: [T, G]
void gated_norm_backward(float* dy, float* z, float* dgain, const float* dout, const float* y, const float* rstd,
                         const float* gain, const GatedNormSize& size);

}}  // namespace plumb::kernels
