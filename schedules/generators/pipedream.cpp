#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb {

Schedule pipedream_schedule(const ScheduleParameters& parameters) {
  Schedule schedule = one_f_one_b_schedule(parameters);
  schedule.name = "pipedream";
  schedule.weights = WeightPolicy::kStashed;
  for (std::vector<Action>& actions : schedule.ranks) {
    std::vector<Action> with_steps;
    with_steps.reserve(actions.size() + static_cast<std::size_t>(schedule.microbatches));
    for (const Action& action : actions) {
      with_steps.push_back(action);
      if (action.op == Op::kBackward) with_steps.push_back({.op = Op::kOptimizerStep, .stage = action.stage});
    }
    actions = std::move(with_steps);
  }
  return schedule;
}

}  // namespace plumb
