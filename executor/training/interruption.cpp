#include "executor/training/interruption.h"

#include <utility>

#include "executor/training/run_result.h"

namespace plumb { inline namespace executor {

Interruption::Interruption(const Schedule& schedule) : timeline_(empty_timeline(schedule)) {}

void Interruption::add(const GridCoordinates& place, RankTimeline timeline) {
  if (!stands_for_its_pipeline_rank(place)) return;
  const std::lock_guard lock(mutex_);
  timeline_.ranks[static_cast<std::size_t>(place.pipeline)] = std::move(timeline);
  happened_ = true;
}

void Interruption::tell(const InterruptionListener& listener) const {
  if (happened_ && listener) listener(timeline_);
}

}}  // namespace plumb::executor
