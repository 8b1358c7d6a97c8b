// Kernels of Mamba-2's blocks, recorded.

#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

void CallRecorder::causal_convolution_forward(void* y, const void* x, const void* weight, const float* bias,
                                              const CausalConvolutionSize& size) {
  add([=](DeviceKernels& kernels) { kernels.causal_convolution_forward(y, x, weight, bias, size); });
}

void CallRecorder::causal_convolution_backward(void* x, float* dweight, float* dbias, const void* dy,
                                               const void* weight, const float* bias,
                                               const CausalConvolutionSize& size) {
  add([=](DeviceKernels& kernels) { kernels.causal_convolution_backward(x, dweight, dbias, dy, weight, bias, size); });
}

void CallRecorder::state_space_forward(void* y, const void* xbc, const void* steps, float* scratch,
                                       const StateSpaceParameters& parameters, const StateSpaceSize& size) {
  add([=](DeviceKernels& kernels) { kernels.state_space_forward(y, xbc, steps, scratch, parameters, size); });
}

void CallRecorder::state_space_backward(void* xbc, void* steps, float* scratch, const StateSpaceGradients& gradients,
                                        const void* dy, const StateSpaceParameters& parameters,
                                        const StateSpaceSize& size) {
  add([=](DeviceKernels& kernels) {
    kernels.state_space_backward(xbc, steps, scratch, gradients, dy, parameters, size);
  });
}

void CallRecorder::gated_norm_forward(void* out, float* rstd, const void* y, const void* z, const float* gain,
                                      const GatedNormSize& size, float epsilon) {
  add([=](DeviceKernels& kernels) { kernels.gated_norm_forward(out, rstd, y, z, gain, size, epsilon); });
}

void CallRecorder::gated_norm_backward(void* dy, void* z, float* dgain, const void* dout, const void* y,
                                       const float* rstd, const float* gain, const GatedNormSize& size) {
  add([=](DeviceKernels& kernels) { kernels.gated_norm_backward(dy, z, dgain, dout, y, rstd, gain, size); });
}

}}  // namespace plumb::executor
