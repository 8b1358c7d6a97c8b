#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb {

Schedule one_f_one_b_schedule(const ScheduleParameters& parameters) {
  const auto [p, m, v, g] = parameters;
  Schedule schedule{.name = "1f1b", .microbatches = m, .stages = loop_placement(p, p)};
  for (int r = 0; r < p; ++r) {
    std::vector<Action> forwards;
    std::vector<Action> backwards;
    for (int i = 0; i < m; ++i) {
      forwards.push_back(compute_action(Op::kForward, r, i));
      backwards.push_back(compute_action(Op::kBackward, r, i));
    }
    schedule.ranks.push_back(one_forward_one_backward(forwards, backwards, p - 1 - r));
  }
  return schedule;
}

}  // namespace plumb
