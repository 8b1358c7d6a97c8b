#include "schedules/passes/activation_lives.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace schedules {

std::vector<ActivationLife> activation_lives(const std::vector<Action>& actions,
                                             const std::vector<ComputeStep>& steps) {
  std::vector<ActivationLife> activations;
  std::map<std::tuple<int, int, int>, std::size_t> index;  // (stage, micro-batch, slice)
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (std::size_t i = steps[step].first; i < steps[step].behind(); ++i) {
      const Action& a = actions[i];
      if (a.op == Op::kOptimizerStep) continue;
      const auto key = std::tuple(a.stage, a.microbatch, static_cast<int>(a.part));
      if (a.op == Op::kForward) {
        index[key] = activations.size();
        activations.push_back({.forward = a, .made = step});
        continue;
      }
      const auto found = index.find(key);
      if (found == index.end()) continue;  // validate reports it
      ActivationLife& activation = activations[found->second];
      activation.released = step;
      if (activation.needed != 0) continue;
      activation.needed = step;
      activation.needed_at = i;
    }
  }
  std::erase_if(activations, [](const ActivationLife& activation) { return activation.needed == 0; });
  return activations;
}

Action move_of(Op op, const ActivationLife& activation) {
  const Action& of = activation.forward;
  return {.op = op, .part = of.part, .stage = of.stage, .microbatch = of.microbatch};
}

void require_unmoved(const Schedule& schedule) {
  for (const std::vector<Action>& actions : schedule.ranks) {
    const auto mover = std::ranges::find_if(actions, [](const Action& a) { return takes_away(a.op); });
    if (mover == actions.end()) continue;
    throw ScheduleError(fmt::format("{} moves activations already ({}): offload a schedule that keeps them",
                                    schedule.name, to_text(*mover)));
  }
}

}}  // namespace plumb::schedules
