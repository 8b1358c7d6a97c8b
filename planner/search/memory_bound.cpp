#include "planner/search/memory_bound.h"

#include "planner/evaluate/layout_memory.h"

namespace plumb { inline namespace planner {

std::int64_t least_peak_bytes(Pricing& pricing, const Layout& core, const Skeleton& skeleton) {
  const bool counted = pricing.graph() == nullptr && pricing.device_footprints(core) == nullptr &&
                       skeleton.bound.backwards && !skeleton.order.copies && !skeleton.order.has(Op::kEvict);
  if (!counted) return 0;
  const StageMemory all = memory_of_all_layers(
      pricing, core,
      {.split = skeleton.order.has(Op::kInputGrad), .recompute_actions = skeleton.order.has(Op::kRecompute)});
  const std::int64_t state =
      all.parameter_bytes + all.gradient_bytes + (core.offload.optimizer ? 0 : all.optimizer_bytes);
  const std::int64_t activations = core.offload.activations ? 0 : all.forward_bytes / core.chunks;
  return (state + activations) / core.pipeline;
}

Layout most_frugal_variant(Layout layout) {
  layout.shard = 0;
  layout.bucket_mib = 0;
  layout.order = RankOrder::kStagesApart;
  layout.offload.optimizer = true;
  return layout;
}

}}  // namespace plumb::planner
