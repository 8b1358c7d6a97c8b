#pragma once
// What the times of all actions amount to: sums, memory, critical path and timeline of a Simulation.

#include "schedules/action_table.h"
#include "simulator/engine.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace simulator {

/// `table` is that of `lowered`, `makespan` the end of the last action. With record_timeline the times need their
/// causes.
Simulation simulation_of(const Schedule& lowered, const ActionTable& table, const CostTable& costs,
                         const ActionTimes& times, SimTime makespan, bool record_timeline);

}}  // namespace plumb::simulator
