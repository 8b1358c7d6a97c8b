#include "schedules/passes/passes.h"

namespace plumb {

Schedule add_optimizer_steps(const Schedule& schedule) {
  bool has_weight_gradients = false;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      if (action.op == Op::kOptimizerStep) return schedule;
      has_weight_gradients = has_weight_gradients || gives_weight_gradient(action.op);
    }
  }
  Schedule result = schedule;
  if (!has_weight_gradients) return result;
  for (int s = 0; s < static_cast<int>(schedule.stages.size()); ++s) {
    result.ranks[schedule.stages[s].rank].push_back({.op = Op::kOptimizerStep, .stage = s});
  }
  return result;
}

}  // namespace plumb
