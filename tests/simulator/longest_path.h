#pragma once
// Computes when each action starts, as the longest path of the action graph: the textbook form of the engine's
// computation, without ranks, cursors or channels. It is the tests' reference and shares with the engine only the
// converted costs.

#include <vector>

#include "schedules/schedule.h"
#include "simulator/engine/action_costs.h"

namespace plumb::test {

/// Returns [action id] the start, the length of the longest path to the action:
///   start(a) = max over dependencies d of a:  start(d.from) + {0, occupied, occupied + latency, offset}(d.wait)
/// Throws ScheduleError if the graph has a cycle.
std::vector<SimTime> longest_path_starts(const Schedule& schedule, const ActionCosts& costs, Sends sends);

}  // namespace plumb::test
