#include "schedules/passes/add_offload.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/passes/activation_lives.h"
#include "schedules/passes/compute_steps.h"
#include "schedules/passes/insertions.h"

namespace plumb { inline namespace schedules {
namespace {

std::vector<Action> with_offloading(const std::vector<Action>& actions, int kept) {
  const std::vector<ComputeStep> steps = compute_steps(actions);
  const std::vector<ActivationLife> activations = activation_lives(actions, steps);
  std::vector<int> released(steps.size(), 0);  // [step] number released
  // [step] activations that come back ahead of it
  std::vector<std::map<std::size_t, const ActivationLife*>> returns(steps.size());
  for (const ActivationLife& activation : activations) ++released[activation.released];

  int here = 0;
  // The activations that are here and may be moved, by the position of their backward: they have not come back, and
  // their backward has not begun.
  std::map<std::size_t, const ActivationLife*> movable;
  auto next = activations.begin();  // the next one that a forward makes
  std::vector<Insertion> insertions;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const auto list = [&](Op op, const ActivationLife& activation) {
      insertions.push_back({.position = steps[step].first, .action = move_of(op, activation)});
    };
    here += static_cast<int>(returns[step].size());
    while (here > kept && !movable.empty() && movable.rbegin()->second->needed > step + 1) {
      const ActivationLife& last = *movable.rbegin()->second;
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
  require_unmoved(schedule);
  for (std::vector<Action>& actions : schedule.ranks) actions = with_offloading(actions, kept);
  return schedule;
}

}}  // namespace plumb::schedules
