#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"
#include "schedules/generators/slices.h"

namespace plumb { inline namespace schedules {

Schedule seq1f1b_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  Schedule schedule{.name = "seq1f1b", .microbatches = parameters.microbatches, .stages = loop_placement(p, p)};
  for (int r = 0; r < p; ++r) {
    const SlicedActions sliced = each_slice("seq1f1b", r, parameters);
    // The last rank must have all slices of a micro-batch before it goes back with the last one.
    schedule.ranks.push_back(
        one_forward_one_backward(sliced.forwards, sliced.backwards, (p - 1 - r) + (parameters.slices - 1)));
  }
  return schedule;
}

}}  // namespace plumb::schedules
