#include "schedules/passes/passes.h"
#include "schedules/weight_holders.h"

namespace plumb { inline namespace schedules {

Schedule add_optimizer_steps(Schedule schedule) {
  bool has_weight_gradients = false;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      if (action.op == Op::kOptimizerStep) return schedule;
      has_weight_gradients = has_weight_gradients || gives_weight_gradient(action.op);
    }
  }
  if (!has_weight_gradients) return schedule;
  const std::vector<int> holders = weight_holders(schedule);
  for (int s = 0; s < static_cast<int>(schedule.stages.size()); ++s) {
    if (holders[s] == s) schedule.ranks[schedule.stages[s].rank].push_back({.op = Op::kOptimizerStep, .stage = s});
  }
  return schedule;
}

}}  // namespace plumb::schedules
