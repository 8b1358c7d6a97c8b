#pragma once
// What ranks that failed have done of their last replay, as one timeline.

#include <functional>
#include <mutex>

#include "schedules/process_grid.h"
#include "traces/timeline.h"

namespace plumb {

using InterruptionListener = std::function<void(const Timeline&)>;

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

}  // namespace plumb
