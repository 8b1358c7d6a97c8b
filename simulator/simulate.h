#pragma once
// The prediction: a lowered schedule and its costs become a Timeline.
//
//   Schedule schedule = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}));
//   Simulation predicted = simulate(schedule, chunk_cost_table(4, {}));   // F = I = W = 1 s
//   predicted.makespan == to_sim_time(Seconds{33})                          // (m+p-1)(F+B)
//
// Issue is in order by rank, a message occupies its channel first in first out, all times are integer picoseconds. The
// semantics are those of docs/design.md, the same that the executor replays.

#include <cstdint>
#include <string_view>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "simulator/compile/compiled_schedule.h"
#include "simulator/path/critical_path.h"
#include "traces/timeline.h"

namespace plumb { inline namespace simulator {

struct SimulationOptions {
  Sends sends = Sends::kBuffered;
  /// If above 0, all messages of a rank leave by one card, which lets so many bytes pass at once.
  std::int64_t burst_bytes = 0;
  /// Refuse the schedules that schedules/rules/validate.h refuses; false where the schedule is known to be valid.
  bool validate = true;
  bool record_timeline = true;  ///< spans and memory samples; without them only the sums below (the planner's search)
  bool record_memory = true;    ///< false: a timeline without its memory samples
};

/// The sums of a step.
struct StepSums {
  SimTime makespan{0};                          ///< the end of the last action of any kind
  double bubble_ratio = 0;                      ///< 1 - sum(busy) / (p * makespan)
  double span_bubble_ratio = 0;                 ///< 1 - max(busy) / max(last_end - first_start)
  std::vector<std::int64_t> peak_memory_bytes;  ///< [rank]
  std::vector<int> peak_activations;  ///< [rank] chunks alive at once, from the start of F to the end of B (W)

  friend bool operator==(const StepSums&, const StepSums&) = default;
};

struct Simulation : StepSums {
  SimTime added{0};                         ///< the part of the makespan that shared links and slow ranks add
  int replicas = 1;                         ///< simulated one by one; 1 where one stands for all that are alike
  int replica = 0;                          ///< the replica of all fields: the first of those that end last
  std::vector<SimTime> busy;                ///< [rank] sum of compute actions (an overlapped pair counts once)
  std::vector<SimTime> first_start;         ///< [rank] of the first compute action
  std::vector<SimTime> last_end;            ///< [rank] of the last compute action
  std::vector<CriticalStep> critical_path;  ///< first to last; empty without record_timeline
  Timeline timeline;                        ///< empty without record_timeline
  std::string_view engine = "compiled";     ///< the engine that computed it: "compiled", "steady state" or "events"
};

/// Returns the longest of the ranks' spans: a span is the last end of a rank's compute minus its first start.
SimTime longest_span(const Simulation& simulation);

/// Predicts the step. Throws ScheduleError if the schedule is not valid (without options.validate, if it deadlocks; the
/// cycle is named action by action) or is not lowered although a message is needed. Throws SpecError if the table has
/// not a row for each stage, or a cost is negative or not finite.
Simulation simulate(const Schedule& lowered, const CostTable& costs, const SimulationOptions& options = {});

/// This form is for a caller that simulates a schedule under many cost tables: `compiled` is made of `lowered`
/// (simulator/compile/compiled_schedule.h), once, and says how sends move. Nothing is validated.
Simulation simulate(const Schedule& lowered, const CompiledSchedule& compiled, const CostTable& costs,
                    bool record_timeline, bool record_memory = true);

}}  // namespace plumb::simulator
