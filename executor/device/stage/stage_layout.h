#pragma once
// Where the layers of a stage have the tensors of a micro-batch, from the first byte of what is kept, of what is
// computed again and of workspace.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/device/layers/device_layer.h"
#include "executor/device/stage/stage_rebuild.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace executor {

struct StageLayout {
  /// Bytes from the first that stand at once; cheap ones behind late ones, or, with selective recomputation, by
  /// themselves.
  struct LayerPlace {
    std::int64_t early = 0, late = 0, cheap = 0;
  };
  /// Layers that are computed again together.
  struct Group {
    std::size_t first = 0, end = 0;
    std::int64_t kept = 0;  ///< bytes from the first that F keeps: its input, where inputs are all that it keeps
  };

  StageRebuild rebuild;
  std::vector<LayerPlace> layers;
  std::vector<Group> groups;
  DeviceLayerBytes bytes;            ///< that stand at once; workspaces of the layer that needs most
  std::int64_t kept_bytes = 0;       ///< of all groups' inputs
  std::int64_t forgotten_bytes = 0;  ///< what of a layer F does not keep, at most
  std::int64_t largest_output = 0;   ///< of a layer

  /// Of computing a group again: its layers', and its output, which nobody needs.
  std::int64_t rebuild_workspace() const { return bytes.forward_workspace + largest_output; }

  /// The bytes of a micro-batch and of workspace; nothing that stays through the step.
  StageMemory microbatch_memory() const;
};

/// bytes: [layer] of `layers`.
StageLayout stage_layout(const std::vector<Layer>& layers, std::span<const DeviceLayerBytes> bytes,
                         const LayerWork& work, std::int64_t element_bytes, const StageRebuild& rebuild);

}}  // namespace plumb::executor
