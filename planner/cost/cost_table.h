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
//   F, I, W         kernels and tensor-group collectives (cost/layer_price.h); B is I and W; with R actions
//   recomputation
//                   is R's, otherwise it stands at the head of B and I
//   REDUCE_GRAD     all-reduce of the gradients in their precision (ZeRO 0), reduce-scatter (ZeRO 1 to 3), routed
//                   experts' over their own replicas; less what a stack hides beside the stage's last backward; by
//                   bucket inside that backward where the layout has buckets (cost/gradient_buckets.h), and then whole
//   UNSHARD         all-gather of the weights; RESHARD costs nothing. A stack's ZeRO 3 gathers and reduces layer by
//                   layer beside the pass: what is left is the first layer, and what lasts longer than the pass
//   OPTIMIZER_STEP  AdamW on the rank's shard; the stages of a tied table first sum its gradient between them
// Messages are the stage's output, divided by the tensor group with sequence parallelism or where a stack scatters
// them. Links follow the placement of the pipeline ranks' devices.

#include <array>
#include <map>
#include <string>
#include <vector>

#include "planner/cost/collective_price.h"
#include "planner/cost/kernel_price.h"
#include "planner/cost/layer_price.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb {

/// The prices of one model on one cluster. It keeps what it has worked out; no answer depends on earlier questions.
/// Throws SpecError as kernel_prices and collective_prices do, and if a sequence has more tokens than the model learned
/// positions for.
class Pricing {
 public:
  Pricing(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training);

  const ModelSpec& model() const { return model_; }
  const ClusterSpec& cluster() const { return cluster_; }
  const TrainingSpec& training() const { return training_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const KernelPrices& kernels() const { return kernels_; }
  const CollectivePrices& collectives() const { return collectives_; }

  /// The layers that differ, in the order in which the model has them first, and for each layer which of them it is.
  const std::vector<Layer>& kinds() const { return kinds_; }
  const std::vector<int>& kind_of_layer() const { return kind_of_layer_; }

  /// [pipeline rank] where the groups of its ranks sit: those of a layer's collectives, those that reduce gradients.
  struct Placements {
    std::vector<InnerGroups> inner;
    std::vector<GroupPlacement> data;         ///< all replicas of the weights
    std::vector<GroupPlacement> expert_data;  ///< all replicas of routed experts
  };
  const Placements& placements(const Layout& layout);

  /// [kind of layer]
  const std::vector<LayerPrice>& layer_prices(const Layout& layout, const InnerGroups& groups);

 private:
  ModelSpec model_;
  ClusterSpec cluster_;
  TrainingSpec training_;
  std::vector<Layer> layers_;
  std::vector<Layer> kinds_;
  std::vector<int> kind_of_layer_;
  KernelPrices kernels_;
  CollectivePrices collectives_;
  std::map<std::array<int, 6>, Placements> placements_;                           ///< by the degrees
  std::map<std::array<std::int64_t, 15>, std::vector<LayerPrice>> layer_prices_;  ///< by work and groups
};

struct PricedLayout {
  CostTable costs;
  std::vector<std::vector<Layer>> layers;  ///< [model part]
  std::vector<int> split;                  ///< [model part] transformer layers
  std::vector<int> buckets;                ///< [stage] of gradients, reduced inside the last backward; empty: none is
  std::vector<std::string> notes;
};

/// `schedule` is the compute order (lowered or not) whose stages are priced. Throws SpecError if the layout's split
/// does not fit model and schedule.
PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule);

}  // namespace plumb
