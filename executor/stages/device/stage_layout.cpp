#include "executor/stages/device/stage_layout.h"

#include <algorithm>

namespace plumb { inline namespace executor {

StageLayout stage_layout(const std::vector<Layer>& layers, std::span<const DeviceLayerBytes> bytes,
                         const LayerWork& work, std::int64_t element_bytes, const StageRebuild& rebuild) {
  StageLayout layout{.rebuild = rebuild};
  const bool is_selective = rebuild.what == Recompute::kSelective;
  std::size_t group_layers = layers.size();
  if (rebuild.what == Recompute::kFull) group_layers = static_cast<std::size_t>(std::max(1, rebuild.layers));
  if (is_selective) group_layers = 1;
  DeviceLayerBytes standing;  // of the layers so far that stand at once
  DeviceLayerBytes& most = layout.bytes;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i % std::max<std::size_t>(1, group_layers) == 0) {
      if (!rebuild.at_once && rebuild.keeps_inputs()) {
        standing.early = 0;
        if (!rebuild.splits) standing.late = 0;
      }
      layout.groups.push_back({.first = i, .kept = layout.kept_bytes});
      if (rebuild.keeps_inputs()) layout.kept_bytes += aligned_bytes(input_elements(layers[i], work) * element_bytes);
    }
    layout.groups.back().end = i + 1;
    const DeviceLayerBytes& own = bytes[i];
    StageLayout::LayerPlace place{.early = standing.early, .late = standing.late};
    standing.early += own.early;
    standing.late += own.late;
    if (is_selective) {
      place.cheap = rebuild.at_once ? standing.cheap : 0;
      standing.cheap = place.cheap + own.cheap;
    } else {
      place.cheap = standing.late;
      standing.late += own.cheap;
    }
    layout.layers.push_back(place);
    most.early = std::max(most.early, standing.early);
    most.late = std::max(most.late, standing.late);
    most.cheap = std::max(most.cheap, standing.cheap);
    most.passing = std::max(most.passing, own.passing);
    most.forward_workspace = std::max(most.forward_workspace, own.forward_workspace);
    most.backward_workspace = std::max(most.backward_workspace, own.backward_workspace);
    layout.forgotten_bytes =
        std::max(layout.forgotten_bytes, is_selective ? own.cheap : own.early + own.late + own.cheap);
    layout.largest_output =
        std::max(layout.largest_output, aligned_bytes(output_elements(layers[i], work) * element_bytes));
  }
  most.forward_workspace += 2 * most.passing;  // in front of the layers' own
  most.backward_workspace += 2 * most.passing;
  return layout;
}

StageMemory StageLayout::microbatch_memory() const {
  StageMemory memory{.forward_bytes = bytes.early + bytes.late,
                     .released_at_input_grad_bytes = bytes.early,
                     .forward_workspace_bytes = bytes.forward_workspace,
                     .backward_workspace_bytes = bytes.backward_workspace};
  if (rebuild.what == Recompute::kSelective) {
    memory.recompute_bytes = bytes.cheap;
    memory.released_at_input_grad_bytes = 0;  // the schedule's memory model counts it off what was rebuilt
    memory.forward_workspace_bytes += forgotten_bytes;
  }
  if (rebuild.keeps_inputs()) {
    memory.forward_bytes = kept_bytes;
    memory.recompute_bytes = bytes.early + bytes.late;
    memory.forward_workspace_bytes = std::max(bytes.forward_workspace + 2 * forgotten_bytes, rebuild_workspace());
    // The gradient between two groups that are computed again one by one waits in the workspace, too.
    memory.backward_workspace_bytes = std::max(rebuild_workspace(), bytes.backward_workspace);
    if (!rebuild.at_once) memory.backward_workspace_bytes += largest_output;
  }
  return memory;
}

}}  // namespace plumb::executor
