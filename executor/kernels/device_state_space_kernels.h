#pragma once
// The GPU kernels of Mamba-2's blocks (executor/layers/device/mamba2_step.h), beyond those of device_kernels.h. Symbols
// are those of kernels/cpu/state_spaces. Sequences are whole.

#include "kernels/cpu/state_spaces/causal_convolution.h"
#include "kernels/cpu/state_spaces/gated_norm.h"
#include "kernels/cpu/state_spaces/state_space.h"

namespace plumb { inline namespace executor {

class DeviceStateSpaceKernels {
 public:
  virtual ~DeviceStateSpaceKernels() = default;

  /// Convolve each channel over its last tokens. y, dy: [T, C]; x: [T, stride], which the backward replaces by its
  /// gradient; weight: [C, w], all stored; bias: fp32 [C], or null with dbias.
  virtual void causal_convolution_forward(void* y, const void* x, const void* weight, const float* bias,
                                          const CausalConvolutionSize& size) = 0;
  virtual void causal_convolution_backward(void* x, float* dweight, float* dbias, const void* dy, const void* weight,
                                           const float* bias, const CausalConvolutionSize& size) = 0;

  /// Run the recurrence of each head; the backward replaces xbc and steps by their gradients. y, dy: [T, H*P]; xbc: [T,
  /// H*P + 2*G*N]; steps: [T, step_stride], all stored; scratch: [b, H, StateSpaceScratch::elements]
  virtual void state_space_forward(void* y, const void* xbc, const void* steps, float* scratch,
                                   const StateSpaceParameters& parameters, const StateSpaceSize& size) = 0;
  virtual void state_space_backward(void* xbc, void* steps, float* scratch, const StateSpaceGradients& gradients,
                                    const void* dy, const StateSpaceParameters& parameters,
                                    const StateSpaceSize& size) = 0;

  /// Norm y * silu(z) over each group; the backward replaces z by its gradient, and dy may be dout. out, y, dy, dout: [T,
  /// C]; z: [T, stride], all stored; rstd: [T, G]; gain, dgain: [C]
  virtual void gated_norm_forward(void* out, float* rstd, const void* y, const void* z, const float* gain,
                                  const GatedNormSize& size, float epsilon) = 0;
  virtual void gated_norm_backward(void* dy, void* z, float* dgain, const void* dout, const void* y, const float* rstd,
                                   const float* gain, const GatedNormSize& size) = 0;
};

}}  // namespace plumb::executor
