#include "executor/layers/host/mamba2_steps.h"

#include <algorithm>
#include <variant>

namespace plumb { inline namespace executor {
namespace {

const Mamba2Mixer& share_of(const HostStep& of) {
  return *mixer_of<Mamba2Mixer>(of.program.share());
}

/// Return the columns of x, B and C, and those of the step sizes, in rows of z, x, B, C and steps.
float* convolved_columns(const HostStep& of, Tensor& projected) {
  return projected.data() + share_of(of).inner();
}
float* step_columns(const HostStep& of, Tensor& projected) {
  return convolved_columns(of, projected) + share_of(of).convolved();
}

/// Returns what a slice finds; null for the first slice, and where sequences are whole.
float* found(const HostStep& of, std::vector<Tensor>& kept) {
  const auto slice = static_cast<std::size_t>(of.context().slice);
  return of.call.sequence == nullptr || slice == 0 ? nullptr : kept[slice].data();
}

/// Returns the place of what the slice leaves to the next one; null for the last slice, and where sequences are whole.
float* left(const HostStep& of, std::vector<Tensor>& kept, std::int64_t elements) {
  const auto next = static_cast<std::size_t>(of.context().slice) + 1;
  if (of.call.sequence == nullptr || next == static_cast<std::size_t>(of.context().slices)) return nullptr;
  kept.resize(std::max(kept.size(), next + 1));
  if (kept[next].empty()) kept[next] = of.context().pool->take(elements);
  return kept[next].data();
}

/// Returns the gradient of what the slice has left, which the backward replaces by that of what it has found.
float* carried(const HostStep& of, Tensor& gradient, std::int64_t elements) {
  if (of.call.sequence == nullptr) return nullptr;
  if (gradient.empty()) gradient = of.context().pool->take_zeros(elements);
  return gradient.data();
}

CausalConvolutionSize convolution_of(const HostStep& of) {
  return {.batch = of.shape()[0],
          .sequence = of.shape()[1],
          .channels = of.shape()[2],
          .taps = of.shape()[3],
          .stride = share_of(of).projected()};
}

void convolve_last_tokens(const HostStep& of, SequenceSaved& shared) {
  const CausalConvolutionSize size = convolution_of(of);
  const CausalConvolutionParameters parameters{of.weight(0), of.weight(1)};
  const float* const earlier = found(of, shared.rows);
  if (of.is_forward()) {
    const float* const x = convolved_columns(of, of.tensor_read(0));
    of.kernels().causal_convolution_forward(of.written(0), x, earlier, parameters, size);
    if (float* const rows = left(of, shared.rows, size.earlier_elements()); rows != nullptr)
      keep_last_rows(rows, x, earlier, size);
    return;
  }
  const CausalConvolutionGradients gradients{of.gradient(0), parameters.bias == nullptr ? nullptr : of.gradient(1)};
  of.kernels().causal_convolution_backward(convolved_columns(of, of.tensor_written(0)), gradients,
                                           carried(of, shared.of_rows, size.earlier_elements()), of.read(0), earlier,
                                           parameters, size);
  if (of.context().slice == 0) shared.release_states();  // this is the mixer's last step that needs it
}

StateSpaceSize state_space_of(const std::vector<std::int64_t>& shape, std::int64_t step_stride) {
  return {.batch = shape[0],
          .sequence = shape[1],
          .heads = shape[2],
          .head_size = shape[3],
          .groups = shape[4],
          .state_size = shape[5],
          .chunk = shape[6],
          .step_stride = step_stride};
}

void run_states(const HostStep& of, SequenceSaved& shared) {
  const StateSpaceSize size = state_space_of(of.shape(), share_of(of).projected());
  const StateSpaceParameters parameters{of.weight(0), of.weight(1), of.weight(2)};
  const float* const earlier = found(of, shared.states);
  float* const scratch = of.context().scratch;
  if (of.is_forward())
    return of.kernels().state_space_forward(of.written(0), left(of, shared.states, size.state_elements()),
                                            {of.read(0), step_columns(of, of.tensor_read(1)), earlier}, parameters,
                                            size, scratch);
  of.kernels().state_space_backward(
      of.written(0), step_columns(of, of.tensor_written(1)), {of.gradient(0), of.gradient(1), of.gradient(2)},
      carried(of, shared.of_states, size.state_elements()), of.read(0), earlier, parameters, size, scratch);
}

void norm_gated(const HostStep& of) {
  const GatedNormSize size{
      .rows = of.rows(), .columns = of.columns(), .groups = of.shape()[2], .stride = share_of(of).projected()};
  if (of.is_forward())
    return of.kernels().gated_norm_forward(of.written(0), of.written(1), of.read(0), of.read(1), of.weight(0), size,
                                           norm_epsilon_of(of.program.layer()));
  of.kernels().gated_norm_backward(of.written(1), of.written(0), of.gradient(0), of.read(0), of.read(1), of.read(3),
                                   of.weight(0), size);
}

}  // namespace

bool is_of_mamba2(const HostStep& of) {
  const KernelKind kind = of.step.call()->kind;
  return kind >= KernelKind::kCausalConvolutionForward && kind <= KernelKind::kGatedNormBackward;
}

void run_mamba2_kernel(const HostStep& of) {
  SequenceSaved none;
  SequenceSaved& shared = of.call.sequence == nullptr ? none : *of.call.sequence;
  switch (of.step.call()->kind) {
    case KernelKind::kCausalConvolutionForward:
    case KernelKind::kCausalConvolutionBackward:
      return convolve_last_tokens(of, shared);
    case KernelKind::kStateSpaceForward:
    case KernelKind::kStateSpaceBackward:
      return run_states(of, shared);
    default:
      return norm_gated(of);
  }
}

std::int64_t mamba2_scratch_of(const HostProgram& program) {
  for (const LayerStep& step : program.steps().steps)
    if (step.is(KernelKind::kStateSpaceForward))
      return state_space_scratch_elements(state_space_of(step.call()->shape, 0));
  return 0;
}

}}  // namespace plumb::executor
