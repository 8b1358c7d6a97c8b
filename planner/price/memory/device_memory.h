#pragma once
// Memory of a stage's micro-batches on a device of Plumb's own executor (kernels/layer/program/places.h), by the rules of
// executor/stages/device/stage_layout.h:
//   none       early tensors stay until I, late and cheap ones until W
//   selective  cheap tensors are rebuilt, one layer at a time; while F runs, those of a layer stand in its workspace,
//              and all kept tensors go at once
//   full       F keeps the input of each layer, and has two layers' other tensors in its workspace by turns; one
//              layer's tensors are rebuilt at a time, or with R those of all layers, or with a split backward all that
//              W needs
// A pass's workspace also holds the messages from and to neighbouring stages.

#include <vector>

#include "kernels/layer.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/layout.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace planner {

/// Bytes of one layer on one rank.
struct DeviceFootprint {
  DeviceBytes bytes;
  std::int64_t input_bytes = 0;
  std::int64_t output_bytes = 0;

  friend bool operator==(const DeviceFootprint&, const DeviceFootprint&) = default;
};

/// True if the layer's places are known: those of token models that the executor runs.
bool has_device_footprint(const Layer& layer);

/// Returns a layer's footprint. Asserts has_device_footprint().
DeviceFootprint device_footprint(const Layer& layer, const TrainingSpec& training, const LayerWork& work);

/// Returns a stage's memory with the parts in which that device differs: activations and workspaces; with ZeRO 2 and 3
/// the whole gradients of a stage beside its shards; with 3 all of its weights between UNSHARD and RESHARD.
StageMemory on_device(StageMemory held, const std::vector<DeviceFootprint>& layers, const Layout& layout,
                      BackwardForm backward);

/// Returns a stage's activations, its rebuilt tensors and its workspaces, without anything that stays through the step.
/// `layers` are the stage's, in order.
StageMemory device_activations(const std::vector<DeviceFootprint>& layers, Recompute recompute, BackwardForm backward);

}}  // namespace plumb::planner
