#pragma once
// What the times of all actions amount to: sums, bubbles, memory, critical path and timeline of a Simulation.

#include <vector>

#include "schedules/action_table.h"
#include "simulator/engine.h"
#include "simulator/memory.h"
#include "simulator/simulate.h"
#include "traces/statistics.h"

namespace plumb {

/// The sums alone, from those of the ranks.
Simulation sums_of(SimTime makespan, const std::vector<RankStatistics>& ranks, const std::vector<RankMemory>& memory);

/// `table` is that of `lowered`, `makespan` the end of the last action. With record_timeline the times need their
/// causes.
Simulation simulation_of(const Schedule& lowered, const ActionTable& table, const CostTable& costs,
                         const ActionTimes& times, SimTime makespan, bool record_timeline);

}  // namespace plumb
