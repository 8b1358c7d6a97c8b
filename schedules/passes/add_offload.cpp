#include "schedules/passes/add_offload.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/passes/compute_steps.h"
#include "schedules/passes/insertions.h"

namespace plumb { inline namespace schedules {
namespace {

/// The life of one activation on its rank, in steps.
struct Activation {
  Action forward;
  std::size_t made = 0;
  std::size_t needed = 0;     // step of its first R, I or B
  std::size_t needed_at = 0;  // position of that action, which is unique also within a pair
  std::size_t released = 0;   // step of its last B, I or W
};

/// Returns the activations that a backward needs, in the order of their forwards.
std::vector<Activation> activations_of(const std::vector<Action>& actions, const std::vector<ComputeStep>& steps) {
  std::vector<Activation> activations;
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
      Activation& activation = activations[found->second];
      activation.released = step;
      if (activation.needed != 0) continue;
      activation.needed = step;
      activation.needed_at = i;
    }
  }
  std::erase_if(activations, [](const Activation& activation) { return activation.needed == 0; });
  return activations;
}

Action move_of(Op op, const Activation& activation) {
  const Action& of = activation.forward;
  return {.op = op, .part = of.part, .stage = of.stage, .microbatch = of.microbatch};
}

std::vector<Action> with_offloading(const std::vector<Action>& actions, int kept) {
  const std::vector<ComputeStep> steps = compute_steps(actions);
  const std::vector<Activation> activations = activations_of(actions, steps);
  std::vector<int> released(steps.size(), 0);  // [step] number released
  // [step] activations that come back ahead of it
  std::vector<std::map<std::size_t, const Activation*>> returns(steps.size());
  for (const Activation& activation : activations) ++released[activation.released];

  int here = 0;
  // The activations that are here and may be moved, by the position of their backward: they have not come back, and
  // their backward has not begun.
  std::map<std::size_t, const Activation*> movable;
  auto next = activations.begin();  // the next one that a forward makes
  std::vector<Insertion> insertions;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const auto list = [&](Op op, const Activation& activation) {
      insertions.push_back({.position = steps[step].first, .action = move_of(op, activation)});
    };
    here += static_cast<int>(returns[step].size());
    while (here > kept && !movable.empty() && movable.rbegin()->second->needed > step + 1) {
      const Activation& last = *movable.rbegin()->second;
      list(Op::kOffload, last);
      returns[last.needed - 1].emplace(last.needed_at, &last);
      movable.erase(last.needed_at);
      --here;
    }
    for (const auto& [position, activation] : returns[step]) list(Op::kReload, *activation);
    for (; next != activations.end() && next->made == step; ++next, ++here) movable.emplace(next->needed_at, &*next);
    while (!movable.empty() && movable.begin()->second->needed <= step) movable.erase(movable.begin());
    here -= released[step];
  }
  return with_insertions(actions, std::move(insertions));
}

}  // namespace

Schedule add_offload(Schedule schedule, int kept) {
  if (kept < 0) throw ScheduleError(fmt::format("{} activations cannot be kept: give 0 or more", kept));
  for (std::vector<Action>& actions : schedule.ranks) {
    const auto mover = std::ranges::find_if(actions, [](const Action& a) { return takes_away(a.op); });
    if (mover != actions.end()) {
      throw ScheduleError(fmt::format("{} moves activations already ({}): offload a schedule that keeps them",
                                      schedule.name, to_text(*mover)));
    }
    actions = with_offloading(actions, kept);
  }
  return schedule;
}

}}  // namespace plumb::schedules
