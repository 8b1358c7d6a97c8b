#include "executor/layers/device/mamba2_step.h"

#include <variant>

namespace plumb { inline namespace executor {
namespace {

const Mamba2Mixer& share_of(const StepCall& of) {
  return *mixer_of<Mamba2Mixer>(of.program.share());
}

/// Return the columns of x, B and C, and those of the step sizes, in rows of z, x, B, C and steps.
std::byte* convolved_columns(const StepCall& of, std::byte* projected) {
  return projected + share_of(of).inner() * of.program.element_bytes();
}
std::byte* step_columns(const StepCall& of, std::byte* projected) {
  return convolved_columns(of, projected) + share_of(of).convolved() * of.program.element_bytes();
}

void convolve_last_tokens(const StepCall& of) {
  const CausalConvolutionSize size{.batch = of.shape()[0],
                                   .sequence = of.shape()[1],
                                   .channels = of.shape()[2],
                                   .taps = of.shape()[3],
                                   .stride = share_of(of).projected()};
  const float* const bias = of.vector(1);
  if (of.is_forward())
    return of.kernels().causal_convolution_forward(of.written(0), convolved_columns(of, of.read(0)), of.weight(0), bias,
                                                   size);
  of.kernels().causal_convolution_backward(convolved_columns(of, of.written(0)), of.gradient(0),
                                           bias == nullptr ? nullptr : of.gradient(1), of.read(0), of.weight(0), bias,
                                           size);
}

/// The scratch is written last.
void run_states(const StepCall& of) {
  const StateSpaceSize size{.batch = of.shape()[0],
                            .sequence = of.shape()[1],
                            .heads = of.shape()[2],
                            .head_size = of.shape()[3],
                            .groups = of.shape()[4],
                            .state_size = of.shape()[5],
                            .chunk = of.shape()[6],
                            .step_stride = share_of(of).projected()};
  const StateSpaceParameters parameters{of.vector(0), of.vector(1), of.vector(2)};
  float* const scratch = of.floats_written(of.step.writes.size() - 1);
  if (of.is_forward())
    return of.kernels().state_space_forward(of.written(0), of.read(0), step_columns(of, of.read(1)), scratch,
                                            parameters, size);
  of.kernels().state_space_backward(of.written(0), step_columns(of, of.written(1)), scratch,
                                    {of.gradient(0), of.gradient(1), of.gradient(2)}, of.read(0), parameters, size);
}

void norm_gated(const StepCall& of) {
  const GatedNormSize size{
      .rows = of.rows(), .columns = of.columns(), .groups = of.shape()[2], .stride = share_of(of).projected()};
  if (of.is_forward())
    return of.kernels().gated_norm_forward(of.written(0), of.floats_written(1), of.read(0), of.read(1), of.vector(0),
                                           size, static_cast<float>(norm_epsilon_of(of.program.layer())));
  of.kernels().gated_norm_backward(of.written(1), of.written(0), of.gradient(0), of.read(0), of.read(1),
                                   of.floats_read(3), of.vector(0), size);
}

}  // namespace

bool is_of_mamba2(KernelKind kind) {
  return kind >= KernelKind::kCausalConvolutionForward && kind <= KernelKind::kGatedNormBackward;
}

void enqueue_mamba2(const StepCall& of) {
  switch (of.step.call()->kind) {
    case KernelKind::kCausalConvolutionForward:
    case KernelKind::kCausalConvolutionBackward:
      return convolve_last_tokens(of);
    case KernelKind::kStateSpaceForward:
    case KernelKind::kStateSpaceBackward:
      return run_states(of);
    default:
      return norm_gated(of);
  }
}

}}  // namespace plumb::executor
