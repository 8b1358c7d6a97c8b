#include "schedules/passes/add_offload.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/passes/compute_steps.h"
#include "schedules/passes/insertions.h"

namespace plumb {
namespace {

/// The life of one activation on its rank, in steps.
struct Activation {
  Action forward;
  std::size_t made = 0;
  std::size_t needed = 0;     // first R, I or B
  std::size_t needed_at = 0;  // position of that: unique, also within a pair
  std::size_t released = 0;   // last B, I or W
  bool has_moved = false;
};

/// Those that a backward needs, in the order of their forwards.
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

std::vector<Action> with_offloading(const std::vector<Action>& actions, std::size_t kept) {
  const std::vector<ComputeStep> steps = compute_steps(actions);
  std::vector<Activation> activations = activations_of(actions, steps);
  std::vector<Activation*> here;
  std::vector<Activation*> away;
  std::size_t next = 0;  // the next one that a forward makes
  std::vector<Insertion> insertions;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const auto comes_back = [step](const Activation* a) { return a->needed == step + 1; };
    std::vector<Activation*> returning;
    std::ranges::copy_if(away, std::back_inserter(returning), comes_back);
    std::erase_if(away, comes_back);
    here.insert(here.end(), returning.begin(), returning.end());

    const auto comes_later = [](const Activation* a, const Activation* b) { return a->needed_at < b->needed_at; };
    while (here.size() > kept) {
      std::vector<Activation*> free;
      std::ranges::copy_if(here, std::back_inserter(free),
                           [step](const Activation* a) { return !a->has_moved && a->needed > step + 1; });
      if (free.empty()) break;
      Activation* last = *std::ranges::max_element(free, comes_later);
      last->has_moved = true;
      insertions.push_back({.position = steps[step].first, .action = move_of(Op::kOffload, *last)});
      away.push_back(last);
      std::erase(here, last);
    }
    std::ranges::sort(returning, comes_later);
    for (const Activation* activation : returning)
      insertions.push_back({.position = steps[step].first, .action = move_of(Op::kReload, *activation)});

    for (; next < activations.size() && activations[next].made == step; ++next) here.push_back(&activations[next]);
    std::erase_if(here, [step](const Activation* a) { return a->released == step; });
  }
  return with_insertions(actions, std::move(insertions));
}

}  // namespace

Schedule add_offload(const Schedule& schedule, int kept) {
  if (kept < 0) throw ScheduleError(fmt::format("{} activations cannot be kept: give 0 or more", kept));
  Schedule result = schedule;
  for (std::vector<Action>& actions : result.ranks) {
    const auto mover = std::ranges::find_if(actions, [](const Action& a) { return takes_away(a.op); });
    if (mover != actions.end()) {
      throw ScheduleError(fmt::format("{} moves activations already ({}): offload a schedule that keeps them",
                                      schedule.name, to_text(*mover)));
    }
    actions = with_offloading(actions, static_cast<std::size_t>(kept));
  }
  return result;
}

}  // namespace plumb
