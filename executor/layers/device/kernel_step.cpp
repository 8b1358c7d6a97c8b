#include "executor/layers/device/kernel_step.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include "executor/layers/device/dropped_rows.h"
#include "kernels/cpu/images/image_sizes.h"

namespace plumb { inline namespace executor {
namespace {

DeviceBias bias_of(const StepCall& of) {
  constexpr std::size_t kBias = 1;  // behind the weight
  return {.values = of.vector(kBias), .stored = of.weight(kBias)};
}

void multiply(const StepCall& of) {
  const GemmSize size{of.shape()[0], of.shape()[1], of.shape()[2]};
  DeviceKernels& kernels = of.kernels();
  switch (static_cast<GemmForm>(of.shape()[4])) {
    case GemmForm::kForward:
      return kernels.linear_forward(of.written(0), of.read(0), of.weight(0), size);
    case GemmForm::kInputGrad:
      return kernels.linear_input_grad(of.written(0), of.read(0), of.weight(0), size);
    case GemmForm::kWeightGrad:
      return kernels.linear_weight_grad(of.gradient(0), of.read(0), of.read(1), size);
    case GemmForm::kForwardBias:
      return kernels.linear_bias_forward(of.written(0), of.read(0), of.weight(0), bias_of(of), size);
    case GemmForm::kForwardGelu:
      return kernels.linear_gelu_forward(of.written(1), of.written(0), of.read(0), of.weight(0), bias_of(of), size);
    case GemmForm::kWeightGradBias:
      return kernels.linear_bias_weight_grad(of.gradient(0), of.gradient(1), of.read(0), of.read(1), size);
  }
}

/// Returns where a step adds to the gradient of its vector number `i`: there itself, or where rows are divided in a
/// tensor behind the results, which the next step sums over the group.
float* vector_gradient(const StepCall& of, std::size_t i) {
  if (!of.step.gradients.empty()) return of.gradient(i);
  return of.floats_written(of.step.writes.size() - 1) + static_cast<std::int64_t>(i) * of.columns();
}

void clear_own_gradients(const StepCall& of, std::int64_t vectors) {
  if (of.step.gradients.empty()) of.kernels().fill_zero(vector_gradient(of, 0), vectors * of.columns());
}

struct NormParts {
  bool has_mean = false;
  bool adds_residual = false;
};

NormParts norm_parts(const StepCall& of) {
  constexpr std::int64_t kLayerNorm = 1, kBehindResidual = 2;
  return {.has_mean = (of.shape()[2] & kLayerNorm) != 0, .adds_residual = (of.shape()[2] & kBehindResidual) != 0};
}

/// Writes {sum, where a residual comes first; output, deviations, means of a layer norm}.
void norm_forward(const StepCall& of) {
  const NormParts parts = norm_parts(of);
  const std::size_t output = parts.adds_residual ? 1 : 0;
  const DeviceNorm norm{.gain = of.vector(0),
                        .bias = of.vector(1),
                        .mean = parts.has_mean ? of.floats_written(output + 2) : nullptr,
                        .rstd = of.floats_written(output + 1)};
  const auto epsilon = static_cast<float>(norm_epsilon_of(of.program.layer()));
  const NormSize size{of.rows(), of.columns()};
  if (parts.adds_residual)
    return of.kernels().norm_forward(of.written(1), of.written(0), of.read(1), of.read(0), norm, size, epsilon);
  of.kernels().norm_forward(of.written(0), nullptr, of.read(0), nullptr, norm, size, epsilon);
}

/// Reads {gradient of the output, input, the gradient that is added if there is one, deviations, means}.
void norm_backward(const StepCall& of) {
  const bool has_mean = norm_parts(of).has_mean;
  const std::size_t statistics = of.step.reads.size() - (has_mean ? 2 : 1);
  constexpr std::size_t kPast = 2;
  const DeviceNorm norm{.gain = of.vector(0),
                        .mean = has_mean ? of.floats_read(statistics + 1) : nullptr,
                        .rstd = of.floats_read(statistics)};
  clear_own_gradients(of, has_mean ? 2 : 1);
  of.kernels().norm_backward(of.written(0), vector_gradient(of, 0), has_mean ? vector_gradient(of, 1) : nullptr,
                             of.read(0), statistics > kPast ? of.read(kPast) : nullptr, of.read(1), norm,
                             {of.rows(), of.columns()});
}

/// Experts have rows for all that can be picked, which may be more than the call's.
MlpActivation activation_of(const StepCall& of) {
  return {.rows = of.tensor_written(0).rows,
          .columns = of.columns(),
          .gated = of.shape()[2] != 0,
          .exact_gelu = has_exact_gelu(of.program.layer())};
}

/// A fused step reads the residual behind x, and its sum comes behind x among what it writes.
void drop(const StepCall& of) {
  const bool adds_residual = of.step.writes.size() > 1;
  const std::size_t to = adds_residual ? 1 : 0;
  drop_rows(of, of.written(to), of.read(0), adds_residual ? of.read(1) : nullptr, of.columns(),
            dropout_of(of.program.layer()));
}

void rotate(const StepCall& of) {
  const auto& block = std::get<TransformerLayer>(of.program.layer());
  const RotarySize size{.tokens = of.rows(),
                        .sequence = of.program.own().sequence,
                        .heads = of.shape()[1],
                        .head_size = block.head_size,
                        .row_width = of.tensor_written(0).columns,
                        .rotary_size = of.shape()[2]};
  of.kernels().rotary(of.written(0), of.call.constants, size,
                      of.is_forward() ? RotaryDirection::kForward : RotaryDirection::kBackward);
}

std::uint8_t* mask_at(const StepCall& of, int tensor) {
  return reinterpret_cast<std::uint8_t*>(of.at(tensor));
}

/// A bias that a fused step adds belongs to what is read first, and the sum is what is written last.
void add_residual(const StepCall& of) {
  of.kernels().residual_add(of.written(of.step.writes.size() - 1), of.read(1), of.read(0), of.vector(0), of.rows(),
                            of.columns());
}

/// Copies all of a tensor, or rows to rows of more columns or of fewer.
void copy(const StepCall& of) {
  const LayerTensor &from = of.tensor_read(0), &to = of.tensor_written(0);
  if (from.rows == to.rows && from.columns != to.columns) {
    const std::int64_t first = of.step.first_column * of.program.element_bytes();
    const bool is_back = to.columns > from.columns;
    return of.kernels().copy_columns(of.written(0) + (is_back ? first : 0), to.columns,
                                     of.read(0) + (is_back ? 0 : first), from.columns,
                                     {to.rows, std::min(from.columns, to.columns)});
  }
  const bool is_of_data = from.origin == Origin::kHeld;
  of.kernels().copy(of.written(0), is_of_data ? of.call.samples : of.read(0), of.rows() * of.program.element_bytes());
}

}  // namespace

void enqueue_kernel(const StepCall& of) {
  DeviceKernels& kernels = of.kernels();
  switch (of.step.call()->kind) {
    case KernelKind::kGemm:
      return multiply(of);
    case KernelKind::kNormForward:
      return norm_forward(of);
    case KernelKind::kNormBackward:
      return norm_backward(of);
    case KernelKind::kActivationForward:
      return kernels.activation_forward(of.written(0), of.read(0), activation_of(of));
    case KernelKind::kActivationBackward:
      return kernels.activation_backward(of.written(0), of.read(1), activation_of(of));
    case KernelKind::kBiasForward:
      return kernels.bias_forward(of.written(0), of.vector(0), of.rows(), of.columns());
    case KernelKind::kBiasBackward:
      clear_own_gradients(of, 1);
      return kernels.bias_backward(vector_gradient(of, 0), of.read(0), of.rows(), of.columns());
    case KernelKind::kRotary:
      return rotate(of);
    case KernelKind::kResidualAdd:
      return add_residual(of);
    case KernelKind::kDropout:
      return drop(of);
    case KernelKind::kReluForward:
      return kernels.relu_forward(of.written(0), mask_at(of, of.step.writes[1]), of.vector(0), of.rows(), of.columns());
    case KernelKind::kReluBackward:
      return kernels.relu_backward(of.written(0), mask_at(of, of.step.reads[1]), of.rows() * of.columns());
    case KernelKind::kPoolingForward:
      return kernels.pooling_forward(of.written(0), of.step.writes.size() > 1 ? of.integers_written(1) : nullptr,
                                     of.read(0), pooling_size(of.shape()));
    case KernelKind::kPoolingBackward:
      return kernels.pooling_backward(of.written(0), of.read(0),
                                      of.step.reads.size() > 1 ? of.integers_at(of.step.reads[1]) : nullptr,
                                      pooling_size(of.shape()));
    case KernelKind::kCopy:
      return copy(of);
    default:
      assert(!"another file enqueues this kernel");
  }
}

}}  // namespace plumb::executor
