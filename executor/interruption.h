#pragma once
// Runs that end early: what ranks that failed have done of their last replay, as one timeline, and who asks a run to
// end between two of them.

#include <functional>
#include <mutex>
#include <type_traits>

#include <fmt/format.h>

#include "executor/transport/transport.h"
#include "schedules/error.h"
#include "schedules/process_grid.h"
#include "traces/timeline.h"

namespace plumb { inline namespace executor {

using InterruptionListener = std::function<void(const Timeline&)>;

/// Says whether the run is to end. It is asked on each rank before each replay, from any thread; who has said so says
/// so from then on. One is enough, and all end there, with a checkpoint where there are any. Empty: it goes on to its
/// last step.
using EndQuestion = std::function<bool()>;

class Interruption {
 public:
  explicit Interruption(const Schedule& schedule);

  /// From any thread. Only ranks that stand for their pipeline rank are in the timeline.
  void add(const GridCoordinates& place, RankTimeline timeline);

  /// Nothing if no rank has failed inside a replay, or nobody listens.
  void tell(const InterruptionListener& listener) const;

 private:
  std::mutex mutex_;
  Timeline timeline_;
  bool happened_ = false;
};

/// What a rank does outside its replays, when ranks only wait for each other. Names rank and step where that
/// fails, and hands out the timeline of the step before, if there is one.
template <class Work>
std::invoke_result_t<Work> between_steps(int world_rank, int step, const RankTimeline* before,
                                         const std::function<void(RankTimeline)>& interrupted, Work work) {
  try {
    return work();
  } catch (const RunAborted&) {
    throw;
  } catch (const RunError& error) {
    if (before != nullptr && interrupted) interrupted(*before);
    throw RunError(fmt::format("rank {}, before step {}: {}", world_rank, step, error.what()));
  }
}

}}  // namespace plumb::executor
