#pragma once
// One rank of the timed backend, on any transport.

#include <functional>
#include <vector>

#include "executor/replay/replay.h"
#include "executor/timed/timed_spec.h"
#include "executor/training/interruption.h"
#include "executor/transport/emulated/sleeper.h"

namespace plumb { inline namespace executor {

/// The resources with which a rank replays. All of them must outlive the replay.
struct TimedSeat {
  int world_rank = 0;
  Transport* carrier = nullptr;    ///< transport over which the ranks meet before each step
  Transport* transport = nullptr;  ///< transport of messages and gradients; its times count from the sleeper's origin
  TensorPool* pool = nullptr;
  TensorPool* host_pool = nullptr;
  const Sleeper* sleeper = nullptr;
  std::function<void(RankTimeline)> interrupted;  ///< receives the part of a replay that was done when it failed
  EndQuestion ends;                               ///< asks whether it is to end before spec.steps
};

struct TimedRank {
  std::vector<RankTimeline> timelines;  ///< [replay] times count from the common start
  std::vector<SimTime> ends;            ///< [replay] time from the common start until the rank was done
};

/// Replays the rank's list spec.steps times, or until a rank is to end, each time from a start that all ranks have in
/// common. Throws RunError with rank, action and reason, or RunAborted if another rank failed first. The carrier has
/// been aborted then.
TimedRank replay_timed_rank(const TimedSpec& spec, const ReplayPlan& plan, const TimedSeat& seat);

}}  // namespace plumb::executor
