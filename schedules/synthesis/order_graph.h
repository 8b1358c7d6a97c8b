#pragma once
// What a search over orders must know of the actions: who needs whom, and how long each takes. Actions are numbers; all
// this is looked up once, and only the order on each rank changes.

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "schedules/synthesis/list_scheduler.h"

namespace plumb {

/// What the actions of each stage take, in one unit of the caller's choice.
struct OrderCosts {
  std::vector<std::int64_t> forward;      ///< [stage]
  std::vector<std::int64_t> input_grad;   ///< [stage]
  std::vector<std::int64_t> weight_grad;  ///< [stage]; a whole backward takes both
  std::int64_t hop = 0;                   ///< latency between different ranks
};

/// The same for every one of the `stages`.
OrderCosts equal_costs(const ListCosts& costs, int stages);

/// What the table says, in picoseconds; with `whole_backwards` they count as input gradients alone.
OrderCosts order_costs(const CostTable& table, bool whole_backwards = false);

/// [rank] the numbers of its actions, in the order in which they run.
using RankOrders = std::vector<std::vector<std::int32_t>>;

struct OrderGraph {
  static constexpr std::int32_t kNone = -1;

  struct Input {
    std::int32_t id = kNone;
    std::int64_t delay = 0;  ///< from its end to the earliest start
  };

  /// Throws ScheduleError if the schedule has other actions than F, B, I and W, slices or pairs.
  OrderGraph(const Schedule& schedule, const OrderCosts& costs);

  std::vector<Action> actions;
  std::vector<int> ranks;
  std::vector<std::int64_t> durations;
  std::vector<std::array<Input, 2>> inputs;  ///< on its own rank (a backward's forward, a W's I), then the neighbour's
  std::vector<int> readers;                  ///< the other rank that waits for it, or kNone
  RankOrders listed;                         ///< the order of the schedule
};

/// The schedule with its actions in another order.
Schedule in_order(Schedule schedule, const OrderGraph& graph, const RankOrders& orders);

}  // namespace plumb
