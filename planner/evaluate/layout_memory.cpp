#include "planner/evaluate/layout_memory.h"

#include "planner/price/memory/device_memory.h"
#include "planner/price/memory/framework_memory.h"

namespace plumb { inline namespace planner {
namespace {

/// The footprints of layers of these kinds.
template <class Footprint>
std::vector<Footprint> of_kinds(const std::vector<Footprint>& footprints, std::span<const int> kinds) {
  std::vector<Footprint> layers;
  layers.reserve(kinds.size());
  for (const int kind : kinds) layers.push_back(footprints[kind]);
  return layers;
}

/// Returns a stack's footprints by kind, with those of kept layers behind them (stage_passes.h).
std::vector<FrameworkFootprint> footprints_with_kept_layers(Pricing& pricing, const Layout& layout) {
  std::vector<FrameworkFootprint> footprints = pricing.framework_footprints(layout);
  Layout kept = layout;
  kept.recompute = Recompute::kNone;
  const std::vector<FrameworkFootprint>& of_kept = pricing.framework_footprints(kept);
  footprints.insert(footprints.end(), of_kept.begin(), of_kept.end());
  return footprints;
}

}  // namespace

StageMemory memory_of_tensors(Pricing& pricing, const Layout& layout, std::span<const int> kinds, const Layout& shared,
                              BackwardForm backward) {
  const TrainingSpec& training = pricing.training();
  if (const StackSpec* stack = pricing.stack_of(layout)) {
    if (layout.recompute_layers > 0)
      return framework_memory(footprints_with_kept_layers(pricing, layout), kinds, training, *stack, shared, backward);
    return framework_memory(pricing.framework_footprints(layout), kinds, training, *stack, shared, backward);
  }
  return stage_memory(of_kinds(pricing.layer_footprints(layout), kinds), training, shared, backward);
}

StageMemory memory_on_device(Pricing& pricing, const Layout& layout, std::span<const int> kinds, const Layout& shared,
                             BackwardForm backward) {
  const StageMemory memory = memory_of_tensors(pricing, layout, kinds, shared, backward);
  if (pricing.stack_of(layout) != nullptr) return memory;
  const std::vector<DeviceFootprint>* device = pricing.device_footprints(layout);
  return device == nullptr ? memory : on_device(memory, of_kinds(*device, kinds), shared, backward);
}

StageMemory memory_of_all_layers(Pricing& pricing, const Layout& layout, BackwardForm backward) {
  return memory_of_tensors(pricing, layout, pricing.kind_of_layer(), layout, backward);
}

}}  // namespace plumb::planner
