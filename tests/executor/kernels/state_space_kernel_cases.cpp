#include "kernels/layer/state_space_scratch.h"
#include "kernels/simt/state_spaces/causal_convolution.h"
#include "tests/executor/kernels/kernel_cases.h"

namespace plumb::test {
namespace {

CaseCall convolution(KernelOperands& with) {
  const CausalConvolutionSize size{.batch = with.size(1, 3),
                                   .sequence = with.size(1, 20),
                                   .channels = with.size(1, 40),
                                   .taps = with.size(1, simt::kMostTaps),
                                   .stride = with.size(40, 60)};
  const std::int64_t rows = size.batch * size.sequence;
  void *x = with.stored(rows * size.stride), *y = with.stored_room(rows * size.channels);
  const void *weight = with.weights(size.channels * size.taps), *dy = with.stored(rows * size.channels);
  const bool has_bias = with.coin();
  const float* bias = has_bias ? with.floats(size.channels) : nullptr;
  float *dweight = with.floats(size.channels * size.taps), *dbias = has_bias ? with.floats(size.channels) : nullptr;
  return [=](DeviceKernels& kernels) {
    kernels.causal_convolution_forward(y, x, weight, bias, size);
    kernels.causal_convolution_backward(x, dweight, dbias, dy, weight, bias, size);
  };
}

CaseCall states(KernelOperands& with) {
  StateSpaceSize size{.batch = with.size(1, 2),
                      .sequence = with.size(1, 20),
                      .head_size = with.size(1, 9),
                      .groups = with.size(1, 2),
                      .state_size = with.size(1, 9),
                      .chunk = with.size(1, 24)};
  size.heads = size.groups * with.size(1, 2);
  size.step_stride = size.heads + with.size(0, 5);
  const std::int64_t rows = size.batch * size.sequence, heads = size.batch * size.heads;
  const std::int64_t elements =
      heads * state_space_scratch(size.sequence, size.head_size, size.state_size, size.chunk, true).elements;
  void *xbc = with.stored(rows * size.row_width()), *steps = with.stored(rows * size.step_stride);
  void* y = with.stored_room(rows * size.inner());
  const void* dy = with.stored(rows * size.inner());
  const StateSpaceParameters parameters{with.floats(size.heads), with.floats(size.heads), with.floats(size.heads)};
  const StateSpaceGradients gradients{with.floats(size.heads), with.floats(size.heads), with.floats(size.heads)};
  float* scratch = with.float_room(elements);
  return [=](DeviceKernels& kernels) {
    kernels.state_space_forward(y, xbc, steps, scratch, parameters, size);
    kernels.state_space_backward(xbc, steps, scratch, gradients, dy, parameters, size);
  };
}

CaseCall gated_norm(KernelOperands& with) {
  GatedNormSize size{.rows = with.size(1, 30), .groups = with.size(1, 3)};
  size.columns = size.groups * with.size(1, 150);
  size.stride = size.columns + with.size(0, 9);
  const std::int64_t elements = size.rows * size.columns;
  void *z = with.stored(size.rows * size.stride), *out = with.stored_room(elements), *gradient = with.stored(elements);
  const void* y = with.stored(elements);
  const float* gain = with.floats(size.columns);
  float *rstd = with.float_room(size.rows * size.groups), *dgain = with.floats(size.columns);
  return [=](DeviceKernels& kernels) {
    kernels.gated_norm_forward(out, rstd, y, z, gain, size, 1e-5F);
    kernels.gated_norm_backward(gradient, z, dgain, gradient, y, rstd, gain, size);
  };
}

}  // namespace

void append_state_space_cases(std::vector<KernelCase>& cases) {
  cases.insert(cases.end(),
               {{"convolution over tokens", convolution}, {"state space", states}, {"gated norm", gated_norm}});
}

}  // namespace plumb::test
