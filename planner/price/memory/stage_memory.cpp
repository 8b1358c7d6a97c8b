#include "planner/price/memory/stage_memory.h"
#include "planner/spec/training_spec.h"

#include <algorithm>

namespace plumb { inline namespace planner {
namespace {

/// Returns true if the optimizer's state is so many bytes a parameter.
bool is_elementwise(Optimizer optimizer) {
  return optimizer != Optimizer::kAdamW8Bit && optimizer != Optimizer::kAdafactor;
}

std::int64_t moment_bytes_of(const ParameterTensor& tensor, const TrainingSpec& training) {
  constexpr std::int64_t kMoments = 2, kBlock = 2048;
  const std::int64_t elements = element_count(tensor);
  if (training.optimizer == Optimizer::kAdamW8Bit)
    return kMoments * (elements + kFp32Bytes * ((elements + kBlock - 1) / kBlock));
  if (tensor.is_vector()) return kFp32Bytes * elements;
  const std::int64_t rows = tensor.shape[tensor.shape.size() - 2], columns = tensor.shape.back();
  return kFp32Bytes * (rows + columns) * (elements / std::max<std::int64_t>(1, rows * columns));
}

/// Returns the bytes of optimizer state of one tensor on one rank.
std::int64_t optimizer_bytes_of(const ParameterTensor& tensor, const TrainingSpec& training) {
  const std::int64_t elements = element_count(tensor);
  if (is_elementwise(training.optimizer)) return elements * optimizer_bytes_per_parameter(training);
  const std::int64_t master = bytes_per_element(training.precision) < kFp32Bytes ? kFp32Bytes * elements : 0;
  return master + moment_bytes_of(tensor, training);
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

LayerFootprint layer_footprint(const Layer& layer, const TrainingSpec& training, const LayerWork& work,
                               Recompute recompute) {
  const LayerProgram program = layer_program(layer, work);
  const std::int64_t element_bytes = bytes_per_element(training.precision);
  const bool is_whole = recompute == Recompute::kFull && is_block(layer);
  LayerFootprint footprint{.forward_workspace_bytes = workspace_bytes(program, Pass::kForward, element_bytes),
                           .backward_workspace_bytes = workspace_bytes(program, Pass::kInputGrad, element_bytes),
                           .output_bytes = output_elements(layer, work) * element_bytes,
                           .rebuilt_whole = is_whole};
  for (const ParameterTensor& tensor : program.parameters) {
    (tensor.expert ? footprint.expert_parameters : footprint.parameters) += element_count(tensor);
    if (tensor.balance_rate > 0) continue;
    (tensor.expert ? footprint.expert_optimizer_bytes : footprint.optimizer_bytes) +=
        optimizer_bytes_of(tensor, training);
  }
  const Recompute what = is_whole || recompute == Recompute::kSelective ? recompute : Recompute::kNone;
  for (const SavedTensor& tensor : saved_tensors(program, what)) {
    const std::int64_t bytes = tensor.bytes(element_bytes);
    if (tensor.from_input_grad) {  // this tensor appears when others are released
      footprint.released_at_input_grad_bytes -= bytes;
      continue;
    }
    (tensor.recomputed ? footprint.rebuilt_bytes : footprint.kept_bytes) += bytes;
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
  std::int64_t expert_state = 0;
  std::int64_t largest = 0;
  std::int64_t largest_pair = 0;
  std::int64_t before = 0;
  for (const LayerFootprint& layer : layers) {
    const std::int64_t whole = layer.parameters + layer.expert_parameters;
    parameters += layer.parameters;
    experts += layer.expert_parameters;
    state += layer.optimizer_bytes;
    expert_state += layer.expert_optimizer_bytes;
    largest = std::max(largest, whole);
    largest_pair = std::max(largest_pair, before + whole);
    before = whole;
    memory.forward_workspace_bytes = std::max(memory.forward_workspace_bytes, layer.forward_workspace_bytes);
    memory.backward_workspace_bytes = std::max(memory.backward_workspace_bytes, layer.backward_workspace_bytes);
  }
  memory.forward_workspace_bytes += layers.back().output_bytes;
  memory.backward_workspace_bytes += layers.back().output_bytes;

  const int shards = state_shards(layout);
  const int expert_shards = expert_state_shards(layout);
  const auto held = [&](bool sharded, std::int64_t of_all, std::int64_t of_experts) {
    return largest_share(of_all, sharded ? shards : 1) + largest_share(of_experts, sharded ? expert_shards : 1);
  };
  memory.parameter_bytes = held(layout.zero >= 3, parameters, experts) * element_bytes;
  memory.gradient_bytes = held(layout.zero >= 2, parameters, experts) * gradient_bytes;
  memory.optimizer_bytes = is_per_parameter
                               ? held(layout.zero >= 1, parameters, experts) * optimizer_bytes_per_parameter(training)
                               : held(layout.zero >= 1, state, expert_state);
  if (layout.zero >= 2 && shards > 1) memory.backward_workspace_bytes += largest * gradient_bytes;
  if (layout.zero >= 3 && shards > 1) memory.unsharded_bytes = largest_pair * element_bytes;

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
