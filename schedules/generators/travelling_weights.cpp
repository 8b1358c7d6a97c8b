#include "schedules/generators/travelling_weights.h"

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/limits.h"

namespace plumb { inline namespace schedules {

Schedule travelling_schedule(std::string_view name, const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const double entries = static_cast<double>(p) * p * parameters.microbatches;
  if (entries > kMostForwards) {
    throw ScheduleError(fmt::format(
        "{} has {} parts of the model on each of {} ranks, which makes {:.3g} entries for {} micro-batches: "
        "give fewer than {}",
        name, p, p, entries, parameters.microbatches, kMostForwards));
  }
  Schedule schedule{.name = std::string(name), .microbatches = parameters.microbatches};
  for (int rank = 0; rank < p; ++rank) {
    for (int part = 0; part < p; ++part) schedule.stages.push_back({.rank = rank, .model_part = part, .lane = rank});
  }
  return schedule;
}

}}  // namespace plumb::schedules
