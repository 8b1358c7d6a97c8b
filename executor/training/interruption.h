#pragma once
// Runs that end early: the part of the last replay that was done when a rank failed, as one timeline, and the question
// that ends a run between two replays.

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

/// Returns true if the run is to end. Each rank asks before each replay, on any thread. Once it has returned true on a
/// rank it must go on returning true there. One such rank is enough: all ranks end at that point, with a checkpoint if
/// the run writes any. An empty function lets the run go on to its last step.
using EndQuestion = std::function<bool()>;

class Interruption {
 public:
  explicit Interruption(const Schedule& schedule);

  /// Adds the timeline of a rank; may be called from any thread. Only ranks that stand for their pipeline rank are
  /// kept.
  void add(const GridCoordinates& place, RankTimeline timeline);

  /// Hands the timeline to the listener. Does nothing if no rank has failed inside a replay or the listener is empty.
  void tell(const InterruptionListener& listener) const;

 private:
  std::mutex mutex_;
  Timeline timeline_;
  bool happened_ = false;
};

/// Runs `work`, which a rank does outside its replays, when ranks only wait for each other. If it fails, hands
/// `before`, the timeline of the step before, to `interrupted` where both are given, and throws RunError that names the
/// rank and the step.
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
