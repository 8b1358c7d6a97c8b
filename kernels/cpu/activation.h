#pragma once
// The MLP's nonlinearities. The backward writes the gradient of the input in place of the input. KernelKind
// kActivationForward and kActivationBackward.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct ActivationSize {
  std::int64_t rows = 0;     ///< R
  std::int64_t columns = 0;  ///< F channels of the result
};

/// The activation of an MLP: SwiGLU where it is gated, otherwise GELU.
struct MlpActivation {
  std::int64_t rows = 0;     ///< R
  std::int64_t columns = 0;  ///< F channels of the result
  bool gated = false;
  bool exact_gelu = false;  ///< GELU by erf instead of its tanh approximation

  std::int64_t elements() const { return rows * columns; }
};

/// y = x * Phi(x), Phi by its tanh approximation, or by erf where `exact` (Hendrycks & Gimpel 2016). x, y: [R, F]
void gelu_forward(float* y, const float* x, const ActivationSize& size, bool exact);

/// x := dy * gelu'(x). x, dy: [R, F]
void gelu_backward(float* x, const float* dy, const ActivationSize& size, bool exact);

/// y = silu(gate) * up (Shazeer 2020). gate_up: [R, 2F], a row holds the gate's F channels, then up's; y: [R, F]
void swiglu_forward(float* y, const float* gate_up, const ActivationSize& size);

/// Replaces gate_up by its gradient. gate_up: [R, 2F]; dy: [R, F]
void swiglu_backward(float* gate_up, const float* dy, const ActivationSize& size);

}}  // namespace plumb::kernels
