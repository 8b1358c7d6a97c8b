#include "planner/cost/stage_memory.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace plumb {
namespace {

std::int64_t share(std::int64_t total, int parts) {
  return (total + parts - 1) / parts;
}

std::int64_t bytes_of(const SavedTensor& tensor, std::int64_t element_bytes) {
  constexpr std::int64_t kSinglePrecision = 4;
  return tensor.elements * (tensor.single_precision ? kSinglePrecision : element_bytes);
}

/// By their names in saved_tensors.
bool rebuilt_selectively(std::string_view name) {
  return name == "norm1 output" || name == "norm2 output" || name == "norm output" || name == "activation";
}

bool rebuilt(const Layer& layer, std::string_view name, Recompute recompute) {
  if (recompute == Recompute::kSelective) return rebuilt_selectively(name);
  return recompute == Recompute::kFull && std::holds_alternative<TransformerLayer>(layer) && name != "input";
}

struct LayerActivations {
  std::int64_t kept = 0;
  std::int64_t rebuilt = 0;
  std::int64_t released_at_input_grad = 0;
};

LayerActivations activations_of(const Layer& layer, const LayerWork& work, Recompute recompute,
                                std::int64_t element_bytes) {
  LayerActivations result;
  for (const SavedTensor& tensor : saved_tensors(layer, work)) {
    const std::int64_t bytes = bytes_of(tensor, element_bytes);
    (rebuilt(layer, tensor.name, recompute) ? result.rebuilt : result.kept) += bytes;
    if (!tensor.needed_by_weight_grad) result.released_at_input_grad += bytes;
  }
  return result;
}

void add_activations(StageMemory& memory, const std::vector<Layer>& layers, const LayerWork& work, Recompute recompute,
                     std::int64_t element_bytes, BackwardForm backward) {
  std::int64_t all_rebuilt = 0;
  std::int64_t largest_rebuilt = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerActivations layer = activations_of(layers[i], work, recompute, element_bytes);
    const bool inner_input = backward.recompute_actions && recompute == Recompute::kFull && i > 0 &&
                             std::holds_alternative<TransformerLayer>(layers[i]);
    if (inner_input) layer.rebuilt += std::exchange(layer.kept, 0);
    memory.forward_bytes += layer.kept;
    all_rebuilt += layer.rebuilt;
    largest_rebuilt = std::max(largest_rebuilt, layer.rebuilt);
    if (backward.split) memory.released_at_input_grad_bytes += layer.released_at_input_grad;
  }
  memory.recompute_bytes = backward.split || backward.recompute_actions ? all_rebuilt : largest_rebuilt;
}

}  // namespace

LayerWork work_of(const TrainingSpec& training, const Layout& layout) {
  return {.microbatch = layout.microbatch,
          .sequence = training.sequence,
          .tensor_parallel = layout.tensor,
          .sequence_parallel = layout.sequence_parallel,
          .context_parallel = layout.context,
          .experts = {.parallel = layout.expert, .tensor = layout.expert_tensor}};
}

StageMemory stage_memory(const std::vector<Layer>& layers, const TrainingSpec& training, const Layout& layout,
                         BackwardForm backward) {
  const LayerWork work = work_of(training, layout);
  const std::int64_t element_bytes = bytes_per_element(training.precision);
  const std::int64_t gradient_bytes = bytes_per_element(training.gradient_precision);

  StageMemory memory;
  std::int64_t parameters = 0;
  std::int64_t largest = 0;
  std::int64_t largest_pair = 0;
  std::int64_t before = 0;
  std::int64_t widest = 0;  // hidden elements of one rank's residual stream, gathered
  for (const Layer& layer : layers) {
    const std::int64_t count = parameter_count(layer, layout.tensor);
    parameters += count;
    largest = std::max(largest, count);
    largest_pair = std::max(largest_pair, before + count);
    before = count;
    memory.forward_workspace_bytes =
        std::max(memory.forward_workspace_bytes, workspace_elements(layer, work, Pass::kForward) * element_bytes);
    memory.backward_workspace_bytes =
        std::max(memory.backward_workspace_bytes, workspace_elements(layer, work, Pass::kInputGrad) * element_bytes);
    widest = std::max(widest, std::visit([](const auto& any) { return any.hidden; }, layer));
  }
  const std::int64_t output = output_elements(layers.back(), work) * element_bytes;
  const std::int64_t gathered =
      layout.sequence_parallel ? work.microbatch * work.sequence * widest * element_bytes : 0;  // a GEMM's whole input
  memory.forward_workspace_bytes += output + gathered;
  memory.backward_workspace_bytes += output + gathered;

  memory.parameter_bytes = share(parameters, layout.zero >= 3 ? layout.data : 1) * element_bytes;
  memory.gradient_bytes = share(parameters, layout.zero >= 2 ? layout.data : 1) * gradient_bytes;
  memory.optimizer_bytes =
      share(parameters, layout.zero >= 1 ? layout.data : 1) * optimizer_bytes_per_parameter(training);
  if (layout.zero >= 2 && layout.data > 1) memory.backward_workspace_bytes += largest * gradient_bytes;
  if (layout.zero >= 3 && layout.data > 1) memory.unsharded_bytes = largest_pair * element_bytes;

  add_activations(memory, layers, work, layout.recompute, element_bytes, backward);
  return memory;
}

}  // namespace plumb
