#pragma once
// One rank of a replay by the clock, on whatever transport.

#include <functional>
#include <vector>

#include "executor/interruption.h"
#include "executor/replay.h"
#include "executor/timed/sleeper.h"
#include "executor/timed/timed_spec.h"

namespace plumb { inline namespace executor {

/// What a rank replays with. All of it outlives the replay.
struct TimedSeat {
  int world_rank = 0;
  Transport* carrier = nullptr;    ///< over which the ranks meet before each step
  Transport* transport = nullptr;  ///< of messages and gradients; its times count from the sleeper's origin
  TensorPool* pool = nullptr;
  TensorPool* host_pool = nullptr;
  const Sleeper* sleeper = nullptr;
  std::function<void(RankTimeline)> interrupted;  ///< told what was done of a replay that failed
  EndQuestion ends;                               ///< whether it is to end before spec.steps
};

struct TimedRank {
  std::vector<RankTimeline> timelines;  ///< [replay] from the common start
  std::vector<SimTime> ends;            ///< [replay] when the rank was done, from the common start
};

/// Replays the rank's list spec.steps times, or until a rank is to end, from a start that all ranks have in common each
/// time. Throws RunError with rank, action and reason; RunAborted if another rank failed first; the carrier has been
/// aborted then.
TimedRank replay_timed_rank(const TimedSpec& spec, const ReplayPlan& plan, const TimedSeat& seat);

}}  // namespace plumb::executor
