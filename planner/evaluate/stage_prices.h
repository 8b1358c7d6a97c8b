#pragma once
// The prices of a layout's stages, each that differs once: stages of the same layers whose groups sit alike cost the
// same. What an estimate without a simulation needs; evaluate/priced_layout.h lays it out by stage for the simulator.
//
//   const StageOrder order = stage_order(schedule);                             // once for each order
//   StagePrices prices = price_stages(pricing, layout, schedule, order);        //
//   prices.kind_of_stage

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

/// What prices ask of an order besides where its stages lie; it does not depend on the number of micro-batches.
struct StageOrder {
  unsigned operations = 0;                ///< a bit for each Op that it has
  int parts = 1;                          ///< model parts
  bool copies = false;                    ///< a model part has several stages
  std::vector<std::pair<int, int>> hops;  ///< evaluate/pipeline_hops.h
};
StageOrder stage_order(const Schedule& schedule);

struct StageLink {
  int source = 0;  ///< pipeline rank
  int destination = 0;
  LinkCost cost;
};

struct StagePrices {
  CostTable kinds;                                 ///< its stages are those that differ
  std::vector<int> kind_of_stage;                  ///< [stage]
  std::vector<StageLink> links;                    ///< of the hops
  std::vector<int> split;                          ///< [model part] transformer layers
  std::vector<int> buckets;                        ///< [kind] of gradients; empty: none is reduced inside a backward
  std::vector<std::int64_t> host_optimizer_bytes;  ///< [kind] of one device, where the optimizer is offloaded
  std::vector<std::string> notes;
};

/// `order` is stage_order(schedule), or that of any schedule with the same stages and operations. Throws as
/// price_layout.
StagePrices price_stages(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order);

}}  // namespace plumb::planner
