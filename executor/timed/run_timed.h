#pragma once
// The timed backend: a schedule is replayed on threads that wait instead of computing and exchange real bytes, over
// links that are emulated. It shows what the replay loop and the order of actions make of the durations, for dozens of
// ranks on any machine.
//
//   const TimedResult result = run_timed({.schedule = lowered, .costs = costs, .grid = {.pipeline = 8}, .steps = 5});

#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/process_grid.h"
#include "schedules/schedule.h"
#include "schedules/time.h"
#include "traces/timeline.h"

namespace plumb {

struct TimedSpec {
  Schedule schedule;             ///< lowered
  CostTable costs;               ///< durations of operations, bytes of messages, links
  ProcessGrid grid;              ///< pipeline and data degrees; the costs hold what other groups do
  std::vector<double> speeds;    ///< [pipeline rank] as a share of normal; empty: all 1
  std::int64_t burst_bytes = 0;  ///< that pass an idle link at once
  Sends sends = Sends::kBuffered;
  int steps = 1;         ///< how many times the schedule is replayed
  Seconds watchdog{60};  ///< the run fails if nothing at all moves for that long
};

struct TimedResult {
  std::vector<Seconds> step_seconds;  ///< [replay] from the common start to the last rank's end
  std::vector<Timeline> timelines;    ///< [replay] measured, of replica 0
};

/// The same times with fewer bytes: messages and gradients of 1/factor of their bytes (at least one where there are
/// any), over links that let 1/factor of theirs through. Throws SpecError if the factor is below 1.
CostTable shrink_bytes(CostTable costs, double factor);

/// Nothing of a prediction enters but the durations of compute actions, the bytes and the links: messages take what
/// their links let through, and gradients are summed by collectives over the same links. Throws ScheduleError if the
/// schedule cannot be replayed (plan_replay), SpecError if a cost, a link or a speed is not usable or the bytes would
/// take more than half of the machine's memory, RunError if a rank fails; then all ranks have stopped.
TimedResult run_timed(const TimedSpec& spec);

}  // namespace plumb
