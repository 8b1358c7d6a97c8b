#include "executor/layers/host/host_kernels.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include "executor/layers/host/dropped_rows.h"
#include "executor/layers/host/latent_steps.h"
#include "kernels/cpu/copy_columns.h"
#include "kernels/cpu/images/image_sizes.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns where a step adds to the gradient of its parameter number `i`, of which each has as many columns: there
/// itself, or where rows are divided in a tensor behind the results, which the next step sums over the group.
float* own_gradient(const HostStep& of, std::size_t i) {
  if (!of.step.gradients.empty()) return of.gradient(i);
  return of.written(of.step.writes.size() - 1) + static_cast<std::int64_t>(i) * of.columns();
}

void clear_own_gradients(const HostStep& of) {
  if (of.step.gradients.empty()) std::ranges::fill(of.tensor_written(of.step.writes.size() - 1).values(), 0.0F);
}

void multiply(const HostStep& of) {
  const GemmSize size{of.shape()[0], of.shape()[1], of.shape()[2]};
  switch (static_cast<GemmForm>(of.shape()[4])) {
    case GemmForm::kInputGrad:
      return of.kernels().linear_input_grad(of.written(0), of.read(0), of.weight(0), size);
    case GemmForm::kWeightGrad:
      clear_own_gradients(of);
      return of.kernels().linear_weight_grad(own_gradient(of, 0), of.read(0), of.read(1), size);
    default:
      return of.kernels().linear_forward(of.written(0), of.read(0), of.weight(0), size);
  }
}

NormKind norm_kind(const HostStep& of) {
  return of.shape()[2] != 0 ? NormKind::kLayerNorm : NormKind::kRmsNorm;
}

/// Writes {output, deviations, means of a layer norm}.
void norm_forward(const HostStep& of) {
  const bool has_means = norm_kind(of) == NormKind::kLayerNorm;
  const NormStatistics statistics{.means = has_means ? of.written(2) : nullptr, .deviations = of.written(1)};
  of.kernels().norm_forward(norm_kind(of), of.written(0), statistics, of.read(0), {of.weight(0), of.weight(1)},
                            {of.rows(), of.columns()}, norm_epsilon_of(of.program.layer()));
}

/// Reads {gradient of the output, input, the gradient that is added if there is one, deviations, means}.
void norm_backward(const HostStep& of) {
  const bool has_means = norm_kind(of) == NormKind::kLayerNorm;
  const std::size_t first = of.step.reads.size() - (has_means ? 2 : 1);
  constexpr std::size_t kPast = 2;
  const NormStatistics statistics{.means = has_means ? of.read(first + 1) : nullptr, .deviations = of.read(first)};
  clear_own_gradients(of);
  const NormGradients gradients{own_gradient(of, 0), has_means ? own_gradient(of, 1) : nullptr};
  of.kernels().norm_backward(norm_kind(of), of.written(0), gradients, of.read(0),
                             first > kPast ? of.read(kPast) : nullptr, of.read(1), statistics, {of.weight(0), nullptr},
                             {of.rows(), of.columns()});
}

/// Copies rows to rows of more columns or of fewer, whose other columns stay or are left out.
void copy(const HostStep& of) {
  const LayerTensor &from = of.program.tensor(of.step.reads[0]), &to = of.program.tensor(of.step.writes[0]);
  const bool is_back = to.columns > from.columns;
  copy_columns(of.written(0) + (is_back ? of.step.first_column : 0), to.columns,
               of.read(0) + (is_back ? 0 : of.step.first_column), from.columns,
               {to.rows, std::min(from.columns, to.columns)});
}

MlpActivation activation_of(const HostStep& of) {
  return {.rows = of.rows(),
          .columns = of.columns(),
          .gated = of.shape()[2] != 0,
          .exact_gelu = has_exact_gelu(of.program.layer())};
}

void convolve(const HostStep& of) {
  const ConvolutionSize size = convolution_size(of.shape());
  float* const scratch = of.context().scratch;
  if (of.step.is(KernelKind::kConvolutionWeightGrad))
    return of.kernels().convolution_weight_grad(of.gradient(0), of.read(0), of.read(1), size, scratch);
  if (of.is_forward()) return of.kernels().convolution_forward(of.written(0), of.read(0), of.weight(0), size, scratch);
  of.kernels().convolution_input_grad(of.written(0), of.read(0), of.weight(0), size, scratch);
}

PoolingKind pooling_kind(const HostStep& of) {
  return std::get<PoolingLayer>(of.program.layer()).pooling;
}

}  // namespace

void run_kernel(const HostStep& of) {
  const CpuKernelSet& kernels = of.kernels();
  switch (of.step.call()->kind) {
    case KernelKind::kGemm:
      return multiply(of);
    case KernelKind::kNormForward:
      return norm_forward(of);
    case KernelKind::kNormBackward:
      return norm_backward(of);
    case KernelKind::kCopy:
      return copy(of);
    case KernelKind::kActivationForward:
      return kernels.activation_forward(of.written(0), of.read(0), activation_of(of));
    case KernelKind::kActivationBackward:
      return kernels.activation_backward(of.written(0), of.read(1), activation_of(of));
    case KernelKind::kBiasForward:
      return kernels.bias_forward(of.written(0), of.weight(0), of.rows(), of.columns());
    case KernelKind::kBiasBackward:
      clear_own_gradients(of);
      return kernels.bias_backward(own_gradient(of, 0), of.read(0), of.rows(), of.columns());
    case KernelKind::kResidualAdd:
      return kernels.residual_add(of.written(0), of.read(0), of.read(1), of.rows(), of.columns());
    case KernelKind::kDropout:
      return drop_rows(of);
    case KernelKind::kReluForward:
      return kernels.relu_forward(of.written(0), of.tensor_written(1).words(), of.rows(), of.columns());
    case KernelKind::kReluBackward:
      return kernels.relu_backward(of.written(0), of.tensor_read(1).words(), of.rows(), of.columns());
    case KernelKind::kPoolingForward:
      return kernels.pooling_forward(pooling_kind(of), of.written(0),
                                     of.step.writes.size() > 1 ? of.tensor_written(1).tokens() : nullptr, of.read(0),
                                     pooling_size(of.shape()));
    case KernelKind::kPoolingBackward:
      return kernels.pooling_backward(pooling_kind(of), of.written(0), of.read(0),
                                      of.step.reads.size() > 1 ? of.tensor_read(1).tokens() : nullptr,
                                      pooling_size(of.shape()));
    case KernelKind::kConvolutionForward:
    case KernelKind::kConvolutionInputGrad:
    case KernelKind::kConvolutionWeightGrad:
      return convolve(of);
    case KernelKind::kSquaredError:
      of.saved.loss = kernels.squared_error(of.written(0), of.read(1), of.rows(), of.columns(), of.call.gradient_scale);
      return;
    default:
      assert(!"another file runs this kernel");
  }
}

std::int64_t convolution_scratch_of(const HostProgram& program) {
  if (!std::holds_alternative<ConvolutionLayer>(program.layer())) return 0;
  return convolution_scratch_elements(convolution_size(program.steps().steps.front().call()->shape));
}

}}  // namespace plumb::executor
