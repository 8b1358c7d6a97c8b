#pragma once
// Measures what a schedule loses where durations vary, and where one rank is slow.

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace simulator {

struct Disturbance {
  double cv = 0.05;  ///< of each compute action by itself (simulator/noise/noise.h)
  int runs = 100;
  double slow_factor = 1.1;  ///< how many times as long the compute of one rank lasts
};

struct Robustness {
  double noise_ratio = 1;  ///< mean makespan under noise over that without
  double slow_ratio = 1;   ///< makespan with the worst rank slow over that without
  int slow_rank = 0;       ///< the rank that costs most where it is slow, the first of equal ones
};

/// Simulates the runs, and each rank slow in its turn; nothing changes a schedule that takes no time. Throws as
/// simulate_noise does.
Robustness robustness(const Schedule& lowered, const CostTable& costs, const Disturbance& disturbance = {});

}}  // namespace plumb::simulator
