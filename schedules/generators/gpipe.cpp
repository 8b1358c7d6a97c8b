#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {

Schedule gpipe_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  Schedule schedule{.name = "gpipe", .microbatches = m, .stages = loop_placement(p, p)};
  for (int r = 0; r < p; ++r) {
    // All forwards run ahead; none is left to alternate with.
    schedule.ranks.push_back(
        one_forward_one_backward(each_microbatch(Op::kForward, r, m), each_microbatch(Op::kBackward, r, m), m));
  }
  return schedule;
}

}}  // namespace plumb::schedules
