#pragma once
// What the actions of a critical path last one after the other, under any costs: with those of the simulation it is the
// makespan, with slightly different ones it says how the makespan changes, without another simulation.
//
//   Seconds growth = path_length(lowered, with_slower_memory, path) - path_length(lowered, costs, path);

#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "simulator/path/critical_path.h"

namespace plumb { inline namespace simulator {

/// Sum of what each step of the path makes the next one wait for: an action's duration (a bucket's offset, where a
/// REDUCE_GRAD starts inside it), a message's hold on its link,
/// and its latency where the next step waits for its delivery. Without the rounding to picoseconds, so that small
/// differences are smooth. `path` is of a simulation of `lowered` without shared links. Throws SpecError if a stage's
/// cost lacks a part that the path runs.
Seconds path_length(const Schedule& lowered, const CostTable& costs, const std::vector<CriticalStep>& path);

}}  // namespace plumb::simulator
