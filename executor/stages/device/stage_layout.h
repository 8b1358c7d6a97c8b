#pragma once
// Places of the tensors of a micro-batch in a stage's layers, in bytes from the first that is kept, that is computed
// again, and of workspace.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/layers/device/device_layer.h"
#include "executor/parameters/device/stage_rebuild.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace executor {

struct StageLayout {
  /// Offsets of a layer's tensors among those that stand at once. Cheap ones lie behind late ones or, with selective
  /// recomputation, by themselves.
  struct LayerPlace {
    std::int64_t early = 0, late = 0, cheap = 0;
  };
  /// Group of layers that are computed again together.
  struct Group {
    std::size_t first = 0, end = 0;
    std::int64_t kept = 0;  ///< offset of its input in the bytes that F keeps, where F keeps inputs alone
  };

  StageRebuild rebuild;
  std::vector<LayerPlace> layers;
  std::vector<Group> groups;
  DeviceLayerBytes bytes;            ///< tensors that stand at once; workspaces of the layer that needs most
  std::int64_t kept_bytes = 0;       ///< bytes of all groups' inputs
  std::int64_t forgotten_bytes = 0;  ///< most bytes of a layer that F does not keep
  std::int64_t largest_output = 0;   ///< bytes of the largest output of a layer

  /// Bytes of workspace in which a group is computed again: that of its layers, and its output, which nobody needs.
  std::int64_t rebuild_workspace() const { return bytes.forward_workspace + largest_output; }

  /// Returns the bytes of a micro-batch and of workspace, without those that stay through the step.
  StageMemory microbatch_memory() const;
};

/// Returns the layout. bytes: [layer] of `layers`.
StageLayout stage_layout(const std::vector<Layer>& layers, std::span<const DeviceLayerBytes> bytes,
                         const LayerWork& work, std::int64_t element_bytes, const StageRebuild& rebuild);

}}  // namespace plumb::executor
