#pragma once
// Prices one stage of a layout: what it costs and holds.
//
//   StagePricer stages(pricing, layout, schedule, stage_order(schedule), split);
//   StagePrice first = stages.price(schedule.stages.front());
//
// evaluate/priced_layout.h says what each operation of a stage is the sum of.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/evaluate/data_parallel_price.h"
#include "planner/evaluate/part_layers.h"
#include "planner/evaluate/stage_order.h"
#include "planner/evaluate/stage_passes.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

struct StagePrice {
  StageCosts costs;
  std::optional<int> buckets;                        ///< gradient buckets; nothing: none is reduced inside a backward
  std::optional<std::int64_t> host_optimizer_bytes;  ///< of one device, where the optimizer is offloaded
};

class StagePricer {
 public:
  /// All must outlive it. `split` has the layers of each part. `pricing` is that of the stages' site.
  StagePricer(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order,
              const std::vector<int>& split);

  /// True for stages of the same layers whose groups are placed alike: they have one price.
  bool alike(const StagePlace& one, const StagePlace& other) const;

  StagePrice price(const StagePlace& stage);

  /// Returns the price with the stage's memory alone.
  StagePrice hold(const StagePlace& stage);

 private:
  bool is_inner(const StagePlace& stage) const { return stage.model_part > 0 && stage.model_part < last_part_; }
  const std::vector<LayerPrice>& prices_on(int rank);
  const Pricing::LayerState& state_of(int kind) const;
  void price_messages(StageCosts& costs, const StagePlace& stage) const;
  void price_replicas(StagePrice& stage, const Replicated& held, std::span<const int> layers,
                      const std::vector<LayerPrice>& prices, const StagePasses& passes);
  Replicated state_on(int rank) const;
  Seconds offloaded(const Replicated& held, Seconds backward) const;
  void price_step(StageCosts& costs, const StagePlace& stage, const Replicated& held, const StagePasses& passes) const;
  StageMemory memory_of(const StagePlace& stage, std::span<const int> layers);
  void price_moves(StageCosts& costs, const StagePlace& stage) const;

  Pricing& pricing_;
  const Layout& layout_;
  const Schedule& schedule_;
  const std::vector<int>& split_;
  BackwardForm backward_;
  bool evicts_ = false;  // BPipe's schedules
  bool in_buckets_ = false;
  const Pricing::Placements& groups_;
  const Layout shared_;  // how many share state
  const std::vector<Pricing::LayerState>& states_;
  PartLayers layers_;
  int last_part_ = 0;
  int first_rank_ = 0;
  int last_rank_ = 0;
  const std::vector<LayerPrice>* prices_ = nullptr;
  std::vector<LayerPrice> prices_with_kept_;
  int prices_rank_ = 0;
  std::vector<KindCount> counts_;
};

}}  // namespace plumb::planner
