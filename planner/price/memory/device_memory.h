#pragma once
// What a stage's micro-batches take on a device of Plumb's own (kernels/layer/device_bytes.h), by the rules of its
// executor (executor/device/stage/stage_layout.h):
//   none       early tensors until I, late and cheap ones until W
//   selective  cheap ones are made again, of a layer at a time; while F runs those of a layer stand in its workspace,
//              and all that is kept goes at once
//   full       F keeps the input of each layer, and has two layers' other tensors in its workspace by turns; what is
//              computed again is a layer's, or, with R or where the backward is split, what of all of them W needs
// A pass's workspace has besides what it takes from, and hands to, neighbouring stages.

#include <vector>

#include "kernels/layer/layer.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/layout.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace planner {

/// Of one layer, on one rank.
struct DeviceFootprint {
  DeviceBytes bytes;
  std::int64_t input_bytes = 0;
  std::int64_t output_bytes = 0;

  friend bool operator==(const DeviceFootprint&, const DeviceFootprint&) = default;
};

/// Asserts has_device_bytes().
DeviceFootprint device_footprint(const Layer& layer, const TrainingSpec& training, const LayerWork& work);

/// A stage's memory with what that device does otherwise: activations and workspaces; with ZeRO 2 and 3 the whole
/// gradients of a stage beside its shards, with 3 all of its weights between UNSHARD and RESHARD.
StageMemory on_device(StageMemory held, const std::vector<DeviceFootprint>& layers, const Layout& layout,
                      BackwardForm backward);

/// A stage's activations, what is rebuilt of them and workspaces; nothing that stays through the step. `layers` are the
/// stage's, in order.
StageMemory device_activations(const std::vector<DeviceFootprint>& layers, Recompute recompute, BackwardForm backward);

}}  // namespace plumb::planner
