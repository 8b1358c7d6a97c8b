#pragma once
// A layout priced: what its stages cost and hold, how the layers lie, and how the ranks reach each other.
//
//   Pricing pricing(model, cluster, training);
//   PricedLayout priced = price_layout(pricing, layout, schedule);
//   simulate(lowered, cost_table(priced));       // evaluate/evaluation.h does all of it
//
// Stages of the same layers whose groups sit alike cost the same, so each kind of stage is priced once. By operation of
// a stage, the sum over its layers:
//   F, I, W          kernels and tensor-group collectives (price/layer/layer_price.h); B is I and W; with R actions
//                    recomputation is R's, otherwise it stands at the head of B and I
//   REDUCE_GRAD      all-reduce of the gradients in their precision (ZeRO 0), reduce-scatter (ZeRO 1 to 3); those of
//                    routed experts over their own replicas; less the part that a stack hides beside the stage's last
//                    backward. With buckets (evaluate/gradient_buckets.h) each is priced whole, inside that backward
//   UNSHARD          all-gather of the weights; RESHARD costs nothing. A stack's ZeRO 3 gathers and reduces layer by
//                    layer beside the pass: the first layer is left, and what lasts longer than the pass
//   OFFLOAD, RELOAD  the stage's activations of a micro-batch over the device's link to its host
//   OPTIMIZER_STEP   AdamW on the rank's shard, or on the CPU (evaluate/host_offload.h); the stages of a tied table
//                    first sum its gradient between them
// Messages are the stage's output, divided by the tensor group with sequence parallelism or where a stack scatters
// them. Links follow the placement of the pipeline ranks' devices.
//
// Each stage is priced by the layout of its rank if the pipeline ranks are meshes of different shape
// (spec/rank_layout.h). Messages between them are reshardings (evaluate/handovers.h).

#include <cstdint>
#include <string>
#include <vector>

#include "planner/evaluate/stage_order.h"
#include "planner/price/collective/resharding.h"
#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

struct StageLink {
  int source = 0;  ///< pipeline rank
  int destination = 0;
  LinkCost cost;
};

/// The message of a micro-batch between two pipeline ranks whose meshes differ (evaluate/handovers.h).
struct Handover {
  int source = 0;
  int destination = 0;
  std::int64_t bytes = 0;  ///< the size of the tensor
  ReshardingPrice chosen;
};

struct PricedLayout {
  CostTable kinds;                  ///< a row for each kind of stage
  std::vector<int> kind_of_stage;   ///< [stage]
  std::vector<StageLink> links;     ///< of the hops
  std::vector<Handover> handovers;  ///< where pipeline ranks are meshes of different shape
  std::vector<int> split;           ///< [model part] transformer layers, or nodes of a graph
  std::vector<int> buckets;         ///< [kind] gradient buckets; empty: none is reduced inside a backward
  std::vector<std::int64_t> host_optimizer_bytes;  ///< [kind] of one device, where the optimizer is offloaded
  std::vector<std::string> notes;                  ///< about the split
};

/// Prices the stages of `schedule`, the compute order (lowered or not). `order` is stage_order(schedule), or that of
/// any schedule with the same stages and operations. Throws SpecError if the layout's split does not fit model and
/// schedule.
PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order);
PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule);

/// Returns price_layout() with the memory of the stages alone, which is found sooner: no times, and no links.
PricedLayout hold_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order);

/// The prices by stage, as a simulation reads them.
CostTable cost_table(const PricedLayout& priced);

/// [stage] gradient buckets, and bytes of the optimizer in the host; empty where PricedLayout has none.
std::vector<int> buckets_by_stage(const PricedLayout& priced);
std::vector<std::int64_t> host_optimizer_bytes_by_stage(const PricedLayout& priced);

/// [model part] the layers that the executor runs; empty lists where it does not run the model's graph.
std::vector<std::vector<Layer>> layers_by_part(const Pricing& pricing, const std::vector<int>& split);

}}  // namespace plumb::planner
