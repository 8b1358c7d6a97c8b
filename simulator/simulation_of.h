#pragma once
// What the times of all actions amount to: sums, memory, critical path and timeline of a Simulation.

#include <optional>
#include <vector>

#include "simulator/engine/engine.h"
#include "simulator/memory/memory.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace simulator {

/// `times` and [rank] `memory` are of the replica of that number, `makespan` is the end of the last action and `path`
/// the critical path to it, which the timeline shows as far as it is of that replica; nothing: no timeline is made.
Simulation simulation_of(const Schedule& lowered, const ActionTimes& times, SimTime makespan,
                         std::vector<RankMemory> memory, std::optional<std::vector<CriticalStep>> path,
                         int replica = 0);

}}  // namespace plumb::simulator
