#pragma once
// The facts of an order that prices depend on.
//
//   StageOrder order = stage_order(schedule);    // once for any number of micro-batches

#include <utility>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

/// The facts of an order that prices depend on, besides the places of its stages. They are the same for any number of
/// micro-batches.
struct StageOrder {
  unsigned operations = 0;                ///< a bit for each Op that the order has
  int parts = 1;                          ///< model parts
  bool copies = false;                    ///< true if a model part has several stages
  std::vector<std::pair<int, int>> hops;  ///< evaluate/pipeline_hops.h

  bool has(Op op) const { return (operations >> static_cast<unsigned>(op) & 1U) != 0; }
};
/// Throws ScheduleError for a schedule whose model parts are pieces of layers: shards (schedules/dependencies/shards.h)
/// and stages without weights (schedules/weight_holders.h); or whose weights travel
/// (schedules/dependencies/weight_messages.h).
StageOrder stage_order(const Schedule& schedule);

}}  // namespace plumb::planner
