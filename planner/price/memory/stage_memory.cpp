#include "planner/price/memory/stage_memory.h"

#include <algorithm>
#include <string_view>

namespace plumb { inline namespace planner {
namespace {

std::int64_t bytes_of(const SavedTensor& tensor, std::int64_t element_bytes) {
  constexpr std::int64_t kSinglePrecision = 4;
  return tensor.elements * (tensor.single_precision ? kSinglePrecision : element_bytes);
}

/// Returns true for the tensors, by their names in saved_tensors, that selective recomputation rebuilds.
bool rebuilt_selectively(std::string_view name) {
  return name == "norm1 output" || name == "norm2 output" || name == "norm output" || name == "activation" ||
         name == "shared activation";
}

bool rebuilt(const Layer& layer, std::string_view name, Recompute recompute) {
  if (recompute == Recompute::kSelective) return rebuilt_selectively(name);
  return recompute == Recompute::kFull && std::holds_alternative<TransformerLayer>(layer) && name != "input";
}

/// Returns true if the optimizer's state is so many bytes a parameter.
bool is_elementwise(Optimizer optimizer) {
  return optimizer != Optimizer::kAdamW8Bit && optimizer != Optimizer::kAdafactor;
}

std::int64_t moment_bytes_of(const ParameterTensor& tensor, const TrainingSpec& training) {
  constexpr std::int64_t kSingle = 4, kMoments = 2, kBlock = 2048;
  const std::int64_t elements = element_count(tensor);
  if (training.optimizer == Optimizer::kAdamW8Bit)
    return kMoments * (elements + kSingle * ((elements + kBlock - 1) / kBlock));
  if (tensor.shape.size() < 2) return kSingle * elements;
  const std::int64_t rows = tensor.shape[tensor.shape.size() - 2], columns = tensor.shape.back();
  return kSingle * (rows + columns) * (elements / std::max<std::int64_t>(1, rows * columns));
}

/// Returns the bytes of optimizer state of one layer on one rank.
std::int64_t optimizer_bytes_of(const Layer& layer, const TrainingSpec& training, const LayerWork& work) {
  const std::int64_t per_parameter = optimizer_bytes_per_parameter(training);
  const std::int64_t parameters = parameter_count(layer, work.tensor_parallel);
  if (is_elementwise(training.optimizer)) return parameters * per_parameter;
  std::int64_t bytes = bytes_per_element(training.precision) < 4 ? 4 * parameters : 0;  // the master copy
  for (const ParameterTensor& tensor : layer_parameters(layer, work.tensor_parallel))
    bytes += moment_bytes_of(tensor, training);
  return bytes;
}

void add_activations(StageMemory& memory, const std::vector<LayerFootprint>& layers, BackwardForm backward) {
  std::int64_t all_rebuilt = 0;
  std::int64_t largest_rebuilt = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerFootprint& layer = layers[i];
    const bool inner_input = backward.recompute_actions && layer.rebuilt_whole && i > 0;
    const std::int64_t kept = inner_input ? 0 : layer.kept_bytes;
    const std::int64_t rebuilt = layer.rebuilt_bytes + layer.kept_bytes - kept;
    memory.forward_bytes += kept;
    all_rebuilt += rebuilt;
    largest_rebuilt = std::max(largest_rebuilt, rebuilt);
    if (backward.split) memory.released_at_input_grad_bytes += layer.released_at_input_grad_bytes;
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

LayerWork context_share(LayerWork work) {
  work.sequence /= work.context_parallel;
  work.context_parallel = 1;
  return work;
}

LayerFootprint layer_footprint(const Layer& layer, const TrainingSpec& training, const LayerWork& whole_work,
                               Recompute recompute) {
  const LayerWork work = context_share(whole_work);
  const std::int64_t element_bytes = bytes_per_element(training.precision);
  const std::int64_t experts = expert_parameter_count(layer, work.experts);
  LayerFootprint footprint{
      .parameters = parameter_count(layer, work.tensor_parallel, work.experts) - experts,
      .expert_parameters = experts,
      .optimizer_bytes = optimizer_bytes_of(layer, training, work),
      .forward_workspace_bytes = workspace_elements(layer, work, Pass::kForward) * element_bytes,
      .backward_workspace_bytes = workspace_elements(layer, work, Pass::kInputGrad) * element_bytes,
      .output_bytes = output_elements(layer, work) * element_bytes,
      .rebuilt_whole = recompute == Recompute::kFull && std::holds_alternative<TransformerLayer>(layer)};
  if (work.sequence_parallel) {
    LayerWork whole = work;
    whole.sequence_parallel = false;
    footprint.gathered_bytes = std::max(input_elements(layer, whole), output_elements(layer, whole)) * element_bytes;
  }
  for (const SavedTensor& tensor : saved_tensors(layer, work)) {
    const std::int64_t bytes = bytes_of(tensor, element_bytes);
    if (tensor.from_input_grad) {  // this tensor appears when others are released
      footprint.released_at_input_grad_bytes -= bytes;
      continue;
    }
    (rebuilt(layer, tensor.name, recompute) ? footprint.rebuilt_bytes : footprint.kept_bytes) += bytes;
    if (!tensor.needed_by_weight_grad) footprint.released_at_input_grad_bytes += bytes;
  }
  return footprint;
}

StageMemory stage_memory(const std::vector<LayerFootprint>& layers, const TrainingSpec& training, const Layout& layout,
                         BackwardForm backward) {
  const std::int64_t element_bytes = bytes_per_element(training.precision);
  const std::int64_t gradient_bytes = bytes_per_element(training.gradient_precision);

  const bool is_per_parameter = is_elementwise(training.optimizer);
  StageMemory memory;
  std::int64_t parameters = 0;
  std::int64_t experts = 0;
  std::int64_t state = 0;
  std::int64_t largest = 0;
  std::int64_t largest_pair = 0;
  std::int64_t before = 0;
  std::int64_t gathered = 0;  // a GEMM's whole input
  for (const LayerFootprint& layer : layers) {
    const std::int64_t whole = layer.parameters + layer.expert_parameters;
    parameters += layer.parameters;
    experts += layer.expert_parameters;
    state += layer.optimizer_bytes;
    largest = std::max(largest, whole);
    largest_pair = std::max(largest_pair, before + whole);
    before = whole;
    memory.forward_workspace_bytes = std::max(memory.forward_workspace_bytes, layer.forward_workspace_bytes);
    memory.backward_workspace_bytes = std::max(memory.backward_workspace_bytes, layer.backward_workspace_bytes);
    gathered = std::max(gathered, layer.gathered_bytes);
  }
  memory.forward_workspace_bytes += layers.back().output_bytes + gathered;
  memory.backward_workspace_bytes += layers.back().output_bytes + gathered;

  const int replicas = layout.data * layout.context;
  const auto held = [&](bool sharded) {
    return largest_share(parameters, sharded ? replicas : 1) +
           largest_share(experts, sharded ? expert_grid_of(layout).data : 1);
  };
  memory.parameter_bytes = held(layout.zero >= 3) * element_bytes;
  memory.gradient_bytes = held(layout.zero >= 2) * gradient_bytes;
  memory.optimizer_bytes = is_per_parameter ? held(layout.zero >= 1) * optimizer_bytes_per_parameter(training)
                                            : largest_share(state, layout.zero >= 1 ? replicas : 1);
  if (layout.zero >= 2 && replicas > 1) memory.backward_workspace_bytes += largest * gradient_bytes;
  if (layout.zero >= 3 && replicas > 1) memory.unsharded_bytes = largest_pair * element_bytes;

  add_activations(memory, layers, backward);
  return memory;
}

StageMemory stage_memory(const std::vector<Layer>& layers, const TrainingSpec& training, const Layout& layout,
                         BackwardForm backward) {
  std::vector<LayerFootprint> footprints;
  for (const Layer& layer : layers) {
    footprints.push_back(layer_footprint(layer, training, work_of(training, layout), layout.recompute));
  }
  return stage_memory(footprints, training, layout, backward);
}

}}  // namespace plumb::planner
