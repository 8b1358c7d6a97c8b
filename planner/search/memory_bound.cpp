#include "planner/search/memory_bound.h"

#include "planner/evaluate/priced_layout.h"

namespace plumb { inline namespace planner {
namespace {

bool has(const Skeleton& skeleton, Op op) {
  return (skeleton.order.operations >> static_cast<unsigned>(op) & 1U) != 0;
}

}  // namespace

std::int64_t least_peak_bytes(Pricing& pricing, const Layout& core, const Skeleton& skeleton) {
  const bool counted = pricing.graph() == nullptr && pricing.device_footprints(core) == nullptr &&
                       skeleton.bound.backwards && !skeleton.order.copies && !has(skeleton, Op::kEvict) &&
                       core.offload == Offload{};
  if (!counted) return 0;
  const StageMemory all = memory_of_all_layers(
      pricing, core, {.split = has(skeleton, Op::kInputGrad), .recompute_actions = has(skeleton, Op::kRecompute)});
  const std::int64_t state = all.parameter_bytes + all.gradient_bytes + all.optimizer_bytes;
  return (state + all.forward_bytes / core.chunks) / core.pipeline;
}

}}  // namespace plumb::planner
