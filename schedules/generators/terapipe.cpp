#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"
#include "schedules/generators/slices.h"

namespace plumb { inline namespace schedules {

Schedule terapipe_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  Schedule schedule{.name = "terapipe", .microbatches = parameters.microbatches, .stages = loop_placement(p, p)};
  for (int r = 0; r < p; ++r) {
    const SlicedActions sliced = each_slice("terapipe", r, parameters);
    // All forwards run ahead, as in gpipe.
    schedule.ranks.push_back(
        one_forward_one_backward(sliced.forwards, sliced.backwards, static_cast<int>(sliced.forwards.size())));
  }
  return schedule;
}

}}  // namespace plumb::schedules
