#pragma once
// Adds up the sums of a simulation.

#include <vector>

#include "simulator/memory/memory.h"
#include "simulator/simulate.h"
#include "traces/statistics.h"

namespace plumb { inline namespace simulator {

/// Returns a Simulation with its sums: times and bubbles of [rank] `ranks`, peaks of [rank] `memory`.
Simulation summary_of(const std::vector<RankStatistics>& ranks, SimTime makespan,
                      const std::vector<RankMemory>& memory);

}}  // namespace plumb::simulator
