#pragma once
// A time that no layout can beat, before a stage of it is priced: the compute and the collectives of all layers on all
// micro-batches, shared out over the pipeline ranks as well as any split could. One price of the layers serves hundreds
// of layouts.
//
//   WorkBounds work(pricing);
//   work.lower_bound(work.work(layout), layout, bound_order(schedule))

#include <algorithm>
#include <tuple>
#include <vector>

#include "planner/evaluate/stage_passes.h"
#include "planner/price/pricing.h"
#include "planner/search/bounds.h"
#include "planner/search/objective.h"
#include "planner/spec/layout.h"
#include "planner/threads/memo.h"

namespace plumb { inline namespace planner {

/// The forward and backward of all layers for one micro-batch.
struct MicrobatchWork {
  Seconds all{0};
  Seconds computing{0};  ///< without collectives, which overlapped pairs hide
};

/// Returns the lesser of each.
inline MicrobatchWork least(const MicrobatchWork& a, const MicrobatchWork& b) {
  return {std::min(a.all, b.all), std::min(a.computing, b.computing)};
}

class WorkBounds {
 public:
  /// `pricing` must outlive it. Threads may ask at the same time.
  explicit WorkBounds(Pricing& pricing);

  /// Returns the work of all layers, of which `rebuilt` are rebuilt where the layout's recompute_layers is above 0 (of
  /// layers of several kinds, none); 0 where the groups of pipeline ranks are placed differently, and on
  /// several sites. The pass of a stage
  /// lasts a norm of its layers' times (StackSpec::host_sharpness), so that stages together last as long as one stage of
  /// all layers, or longer.
  MicrobatchWork work(const Layout& layout, int rebuilt = 0);

  /// Returns the mean over the p ranks, m T / p, for which they compute, where the work is T for one of m micro-batches,
  /// and a time before which no step of the layout ends:
  ///   m T / p                    as no rank is done before it has computed;
  ///   T / (1 - (1 - 1/m)^p)      where each rank has one stage, and its last backward waits for those before it: the
  ///                              ends of the ranks, m t_r + sum of t_q over q < r, cannot all be earlier, as they are
  ///                              equal where t_r falls by 1 - 1/m from rank to rank.
  /// Both are 0 for an order without backwards.
  LeastTimes lower_bound(const MicrobatchWork& work, const Layout& layout, const BoundOrder& order) const;

 private:
  MicrobatchWork work_of_microbatch(const std::vector<LayerPrice>& prices, Recompute recompute, int kept);

  Pricing& pricing_;
  std::vector<KindCount> layers_;                      ///< of the whole model
  Memo<const std::vector<InnerGroups>*, bool> alike_;  ///< [placements] true if all pipeline ranks have the same
  Memo<std::tuple<const std::vector<LayerPrice>*, Recompute, int>, MicrobatchWork> known_;  ///< [..., layers kept]
};

}}  // namespace plumb::planner
