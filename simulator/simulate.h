#pragma once
// The prediction: a lowered schedule and its costs become a Timeline.
//
//   Schedule schedule = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}));
//   Simulation predicted = simulate(schedule, chunk_cost_table(4, {}));
//   predicted.makespan == SimTime{...}
//
// Issue is in order by rank, a message occupies its channel first in first out, all times are integer picoseconds. The
// semantics are DESIGN.md section 3 (schedules/README.md), the same that the executor replays.

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "traces/timeline.h"

namespace plumb {

struct SimulationOptions {
  Sends sends = Sends::kBuffered;
  bool record_timeline = true;  ///< spans and memory samples; without them only the sums below (the planner's search)
};

/// One action on the critical path.
struct CriticalStep {
  int rank = 0;
  std::int64_t position = 0;  ///< in the rank's list
  Action action;
  SimTime start{0};
  SimTime end{0};
};

struct Simulation {
  SimTime makespan{0};
  std::vector<SimTime> busy;                    ///< [rank] sum of compute actions
  std::vector<SimTime> first_start;             ///< [rank] of the first compute action
  std::vector<SimTime> last_end;                ///< [rank] of the last compute action
  double bubble_ratio = 0;                      ///< 1 - sum(busy) / (p * makespan)
  double span_bubble_ratio = 0;                 ///< 1 - max(busy) / max(last_end - first_start)
  std::vector<std::int64_t> peak_memory_bytes;  ///< [rank]
  std::vector<int> peak_activations;            ///< [rank] chunks alive at once, from the start of F to the end of B (W)
  std::vector<CriticalStep> critical_path;      ///< first to last; empty without record_timeline
  Timeline timeline;                            ///< empty without record_timeline
};

/// Throws ScheduleError if the schedule deadlocks (the cycle is named action by action) or is not lowered although a
/// message is needed; SpecError if the table has not a row for each stage, or a cost is negative or not finite.
Simulation simulate(const Schedule& lowered, const CostTable& costs, const SimulationOptions& options = {});

}  // namespace plumb
