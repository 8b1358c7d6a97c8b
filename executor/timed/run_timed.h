#pragma once
// The timed backend: a schedule is replayed on threads that wait instead of computing and exchange real bytes over
// emulated links. It shows the effect of the replay loop and of the order of actions on given durations, for dozens of
// ranks on any machine.
//
//   const TimedResult result = run_timed({.schedule = lowered, .costs = costs, .grid = {.pipeline = 8}, .steps = 5});

#include <vector>

#include "executor/timed/timed_rank.h"
#include "executor/timed/timed_spec.h"
#include "executor/training/interruption.h"
#include "executor/transport/rank_threads.h"
#include "traces/timeline.h"

namespace plumb { inline namespace executor {

struct TimedResult {
  std::vector<Seconds> step_seconds;  ///< [replay] time from the common start to the last rank's end
  std::vector<Timeline> timelines;    ///< [replay] measured, of replica 0
};

struct TimedOptions {
  InterruptionListener interrupted;  ///< receives the part of a replay that was done when it failed
  EndQuestion ends;                  ///< asks whether the run is to end before its last step
  RankThreadsOptions threads;
};

/// Joins the replays of all ranks. ranks: [world rank]
TimedResult timed_result(const TimedSpec& spec, std::vector<TimedRank> ranks);

/// Replays the schedule spec.steps times, or fewer if `ends` says so. Only the durations of compute actions, the bytes
/// and the links come from the cost table: messages take the time that their links need, and gradients are summed by
/// collectives over emulated links. Throws ScheduleError if the schedule cannot be replayed (plan_replay), SpecError if
/// a cost, a link or a speed is not usable or the bytes would take more than half of the machine's memory, and RunError
/// if a rank fails. All ranks have stopped by then.
TimedResult run_timed(const TimedSpec& spec, const TimedOptions& options = {});

}}  // namespace plumb::executor
