#include "planner/price/memory/device_memory.h"

#include <algorithm>
#include <cassert>

namespace plumb { inline namespace planner {
namespace {

/// Sums over a stage's layers of the tensors that stand at once, and the largest of the others.
struct Standing {
  std::int64_t early = 0, late = 0, cheap = 0;
  std::int64_t forward_workspace = 0, backward_workspace = 0;
  std::int64_t inputs = 0;         // of all layers together
  std::int64_t largest_layer = 0;  // largest of the tensors that F forgets
  std::int64_t largest_output = 0;
};

/// Returns the sums. `at_once`: rebuilt tensors of all layers stand until the backward's end; `waits`: those that W
/// needs do.
Standing standing(const std::vector<DeviceFootprint>& layers, Recompute recompute, bool at_once, bool waits) {
  const bool is_full = recompute == Recompute::kFull, is_selective = recompute == Recompute::kSelective;
  Standing all;
  std::int64_t early = 0, late = 0, cheap = 0;  // sums over the layers so far that stand at once
  for (const DeviceFootprint& layer : layers) {
    const DeviceBytes& own = layer.bytes;
    if (is_full && !at_once) {
      early = 0;
      if (!waits) late = 0;
    }
    early += own.early;
    late += own.late + (is_selective ? 0 : own.cheap);
    cheap = own.cheap + (at_once ? cheap : 0);
    all.early = std::max(all.early, early);
    all.late = std::max(all.late, late);
    all.cheap = std::max(all.cheap, is_selective ? cheap : 0);
    all.forward_workspace = std::max(all.forward_workspace, own.forward_workspace);
    all.backward_workspace = std::max(all.backward_workspace, own.backward_workspace);
    all.inputs += layer.input_bytes;
    all.largest_layer = std::max(all.largest_layer, is_selective ? own.cheap : own.early + own.late + own.cheap);
    all.largest_output = std::max(all.largest_output, layer.output_bytes);
  }
  return all;
}

}  // namespace

bool has_device_footprint(const Layer& layer) {
  const bool has_tokens =
      std::holds_alternative<EmbeddingLayer>(layer) || std::holds_alternative<HeadLayer>(layer) || is_block(layer);
  return has_tokens && is_on_devices(layer);
}

DeviceFootprint device_footprint(const Layer& layer, const TrainingSpec& training, const LayerWork& work) {
  assert(has_device_footprint(layer));
  const std::int64_t element_bytes = bytes_per_element(training.precision);
  return {.bytes = layer_places(layer_program(layer, work, Machine::kDevice), element_bytes).bytes,
          .input_bytes = aligned_bytes(input_elements(layer, work) * element_bytes),
          .output_bytes = aligned_bytes(output_elements(layer, work) * element_bytes)};
}

StageMemory on_device(StageMemory held, const std::vector<DeviceFootprint>& layers, const Layout& layout,
                      BackwardForm backward) {
  const StageMemory own = device_activations(layers, layout.recompute, backward);
  held.forward_bytes = own.forward_bytes;
  held.released_at_input_grad_bytes = own.released_at_input_grad_bytes;
  held.recompute_bytes = own.recompute_bytes;
  held.forward_workspace_bytes = own.forward_workspace_bytes;
  held.backward_workspace_bytes = own.backward_workspace_bytes;
  const std::int64_t shards = state_shards(layout);
  if (layout.zero >= 2 && shards > 1) held.backward_workspace_bytes += held.gradient_bytes * shards;
  if (layout.zero >= 3 && shards > 1) held.unsharded_bytes = held.parameter_bytes * shards;
  return held;
}

StageMemory device_activations(const std::vector<DeviceFootprint>& layers, Recompute recompute, BackwardForm backward) {
  const bool is_full = recompute == Recompute::kFull;
  const bool at_once = backward.recompute_actions || (backward.split && !is_full);
  const Standing all = standing(layers, recompute, at_once, backward.split);
  StageMemory memory{.forward_bytes = all.early + all.late,
                     .released_at_input_grad_bytes = backward.split ? all.early : 0,
                     .forward_workspace_bytes = all.forward_workspace,
                     .backward_workspace_bytes = all.backward_workspace};
  if (recompute == Recompute::kSelective) {
    memory.recompute_bytes = all.cheap;
    memory.released_at_input_grad_bytes = 0;
    memory.forward_workspace_bytes += all.largest_layer;
  }
  if (is_full) {
    const std::int64_t rebuilding = all.forward_workspace + all.largest_output;
    memory.forward_bytes = backward.recompute_actions ? layers.front().input_bytes : all.inputs;
    memory.recompute_bytes = all.early + all.late;
    memory.forward_workspace_bytes = std::max(all.forward_workspace + 2 * all.largest_layer, rebuilding);
    memory.backward_workspace_bytes = std::max(rebuilding, all.backward_workspace) + (at_once ? 0 : all.largest_output);
  }
  const std::int64_t messages = layers.front().input_bytes + layers.back().output_bytes;
  memory.forward_workspace_bytes += messages;
  memory.backward_workspace_bytes += messages;
  return memory;
}

}}  // namespace plumb::planner
