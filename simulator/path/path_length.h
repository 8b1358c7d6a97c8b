#pragma once
// Adds up the durations of the actions of a critical path under any costs. With the costs of the simulation the sum is
// the makespan; with slightly different ones it says how the makespan changes, without another simulation.
//
//   Seconds growth = path_length(lowered, with_slower_memory, path) - path_length(lowered, costs, path);

#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "simulator/path/critical_path.h"

namespace plumb { inline namespace simulator {

/// Returns the sum of the times that each step of the path makes the next one wait: an action's duration (a bucket's
/// offset, where a REDUCE_GRAD starts inside it), a message's hold on its link, and its latency where the next step
/// waits for its delivery. Times are not rounded to picoseconds, so that small differences are smooth. `path` is of a
/// simulation of `lowered` without shared links. Throws SpecError if a stage's cost lacks a part that the path runs.
Seconds path_length(const Schedule& lowered, const CostTable& costs, const std::vector<CriticalStep>& path);

}}  // namespace plumb::simulator
