#pragma once
// Model, cluster, training and layout become what the simulator knows of them: a CostTable, and how the layers lie.
//
//   Pricing pricing(model, cluster, training);
//   Schedule order = make_schedule(layout.schedule, {...});
//   PricedLayout priced = price_layout(pricing, layout, order);
//   simulate(lower(order, {.data = {.enabled = layout.data > 1, .zero = layout.zero, .buckets = priced.buckets}}),
//            priced.costs);
//
// By operation of a stage, the sum over its layers:
//   F, I, W         kernels and tensor-group collectives (price/layer/layer_price.h); B is I and W; with R actions
//   recomputation
//                   is R's, otherwise it stands at the head of B and I
//   REDUCE_GRAD     all-reduce of the gradients in their precision (ZeRO 0), reduce-scatter (ZeRO 1 to 3), routed
//                   experts' over their own replicas; less what a stack hides beside the stage's last backward; by
//                   bucket inside that backward where the layout has buckets (evaluate/gradient_buckets.h), and then
//                   whole
//   UNSHARD         all-gather of the weights; RESHARD costs nothing. A stack's ZeRO 3 gathers and reduces layer by
//                   layer beside the pass: what is left is the first layer, and what lasts longer than the pass
//   OFFLOAD, RELOAD the stage's activations of a micro-batch over the device's link to its host
//   OPTIMIZER_STEP  AdamW on the rank's shard, or on the CPU (evaluate/host_offload.h); the stages of a tied table
//   first sum its gradient between them
// Messages are the stage's output, divided by the tensor group with sequence parallelism or where a stack scatters
// them. Links follow the placement of the pipeline ranks' devices.

#include <string>
#include <vector>

#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

struct PricedLayout {
  CostTable costs;
  std::vector<std::vector<Layer>> layers;  ///< [model part]
  std::vector<int> split;                  ///< [model part] transformer layers
  std::vector<int> buckets;                ///< [stage] of gradients, reduced inside the last backward; empty: none is
  std::vector<std::int64_t> host_optimizer_bytes;  ///< [stage] of one device, where the optimizer is offloaded
  std::vector<std::string> notes;
};

/// `schedule` is the compute order (lowered or not) whose stages are priced. Throws SpecError if the layout's split
/// does not fit model and schedule.
PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule);

}}  // namespace plumb::planner
