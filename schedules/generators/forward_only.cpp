#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {

Schedule forward_only_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  Schedule schedule{.name = "forward-only", .microbatches = m, .stages = loop_placement(p, p)};
  for (int r = 0; r < p; ++r) schedule.ranks.push_back(each_microbatch(Op::kForward, r, m));
  return schedule;
}

}}  // namespace plumb::schedules
