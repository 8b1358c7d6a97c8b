#pragma once
// The timed backend: a schedule is replayed on threads that wait instead of computing and exchange real bytes, over
// links that are emulated. It shows what the replay loop and the order of actions make of the durations, for dozens of
// ranks on any machine.
//
//   const TimedResult result = run_timed({.schedule = lowered, .costs = costs, .grid = {.pipeline = 8}, .steps = 5});

#include <vector>

#include "executor/interruption.h"
#include "executor/rank_threads.h"
#include "executor/timed/timed_rank.h"
#include "executor/timed/timed_spec.h"
#include "traces/timeline.h"

namespace plumb { inline namespace executor {

struct TimedResult {
  std::vector<Seconds> step_seconds;  ///< [replay] from the common start to the last rank's end
  std::vector<Timeline> timelines;    ///< [replay] measured, of replica 0
};

struct TimedOptions {
  InterruptionListener interrupted;  ///< told what was done of a replay that failed
  EndQuestion ends;                  ///< whether it is to end before its last step
  RankThreadsOptions threads;
};

/// What all ranks' replays come to. [world rank]
TimedResult timed_result(const TimedSpec& spec, std::vector<TimedRank> ranks);

/// Nothing of a prediction enters but the durations of compute actions, the bytes and the links: messages take what
/// their links let through, and gradients are summed by collectives over the same links. Throws ScheduleError if the
/// schedule cannot be replayed (plan_replay), SpecError if a cost, a link or a speed is not usable or the bytes would
/// take more than half of the machine's memory, RunError if a rank fails; then all ranks have stopped.
TimedResult run_timed(const TimedSpec& spec, const TimedOptions& options = {});

}}  // namespace plumb::executor
