#pragma once
// Makes the sums, memory, critical path and timeline of a Simulation from the times of all actions.

#include <optional>
#include <vector>

#include "simulator/engine/engine.h"
#include "simulator/memory/memory.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace simulator {

/// Returns the Simulation. `times` and [rank] `memory` are of the replica of that number, and `makespan` is the end of
/// the last action. `path` is the critical path to it, which the timeline shows as far as it is of that replica;
/// without it no timeline is made.
Simulation simulation_of(const Schedule& lowered, const ActionTimes& times, SimTime makespan,
                         std::vector<RankMemory> memory, std::optional<std::vector<CriticalStep>> path,
                         int replica = 0);

}}  // namespace plumb::simulator
