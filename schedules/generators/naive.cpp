#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {

Schedule naive_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  Schedule schedule{.name = "naive", .microbatches = m, .stages = loop_placement(p, p)};
  for (int r = 0; r < p; ++r) {
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    for (int i = 0; i < m; ++i) {
      actions.push_back(compute_action(Op::kForward, r, i));
      actions.push_back(compute_action(Op::kBackward, r, i));
    }
  }
  return schedule;
}

}}  // namespace plumb::schedules
