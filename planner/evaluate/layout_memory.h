#pragma once
// The memory of a stage of a layout, from the kinds of its layers.

#include <span>
#include <vector>

#include "planner/price/memory/stage_memory.h"
#include "planner/price/pricing.h"
#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

/// Returns the memory of a stage of layers of these kinds (evaluate/part_layers.h) in tensors, whatever the device.
/// `shared` is the layout with as many replicas as share state. The model is no layer graph unless it has a stack.
StageMemory memory_of_tensors(Pricing& pricing, const Layout& layout, std::span<const int> kinds, const Layout& shared,
                              BackwardForm backward);

/// Returns memory_of_tensors(), or what the stage takes on a device of Plumb's own executor
/// (price/memory/device_memory.h).
StageMemory memory_on_device(Pricing& pricing, const Layout& layout, std::span<const int> kinds, const Layout& shared,
                             BackwardForm backward);

/// Returns the memory of one stage that holds all layers, in tensors.
StageMemory memory_of_all_layers(Pricing& pricing, const Layout& layout, BackwardForm backward);

}}  // namespace plumb::planner
