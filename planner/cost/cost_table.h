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
//   REDUCE_GRAD     all-reduce of the gradients in their precision (ZeRO 0), reduce-scatter (ZeRO 1 to 3), by bucket
//                   where the layout has buckets (cost/gradient_buckets.h)
//   UNSHARD         all-gather of the weights; RESHARD costs nothing
//   OPTIMIZER_STEP  AdamW on the rank's shard; the stages of a tied table first sum its gradient between them
// Messages are the stage's output, divided by the tensor group with sequence parallelism. Links follow the placement of
// the pipeline ranks' devices.

#include <map>
#include <string>
#include <tuple>
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

  /// [pipeline rank] where the tensor and the data groups sit.
  struct Placements {
    std::vector<GroupPlacement> tensor;
    std::vector<GroupPlacement> data;
  };
  const Placements& placements(const ProcessGrid& grid);

  /// Of the embedding, a transformer layer and the head, by Layer::index().
  const std::vector<LayerPrice>& layer_prices(const Layout& layout, const GroupPlacement& tensor_group);

 private:
  ModelSpec model_;
  ClusterSpec cluster_;
  TrainingSpec training_;
  std::vector<Layer> layers_;
  KernelPrices kernels_;
  CollectivePrices collectives_;
  std::map<std::tuple<int, int, int>, Placements> placements_;  ///< by tensor, data, pipeline degree
  std::map<std::tuple<int, bool, std::int64_t, int, int>, std::vector<LayerPrice>> layer_prices_;
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
