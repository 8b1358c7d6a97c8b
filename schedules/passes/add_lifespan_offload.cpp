#include "schedules/passes/add_lifespan_offload.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/passes/activation_lives.h"
#include "schedules/passes/insertions.h"

namespace plumb { inline namespace schedules {
namespace {

/// Sum of the lives of a stage's activations, in compute steps.
struct StageLives {
  int stage = 0;
  std::size_t steps = 0;
  std::size_t activations = 0;
};

/// Returns the `count` stages of a rank whose activations live longest on average.
std::set<int> longest_lived(const Schedule& schedule, const std::vector<ActivationLife>& lives, int count) {
  std::map<int, StageLives> by_stage;
  for (const ActivationLife& life : lives) {
    StageLives& of = by_stage[life.forward.stage];
    of.stage = life.forward.stage;
    of.steps += life.needed - life.made;
    ++of.activations;
  }
  std::vector<StageLives> stages;
  for (const auto& [stage, of] : by_stage) stages.push_back(of);
  std::ranges::sort(stages, [&schedule](const StageLives& a, const StageLives& b) {
    const std::size_t left = a.steps * b.activations, right = b.steps * a.activations;
    return left != right ? left > right : schedule.stages[a.stage].model_part < schedule.stages[b.stage].model_part;
  });
  std::set<int> longest;
  for (int i = 0; i < std::min(count, static_cast<int>(stages.size())); ++i)
    longest.insert(stages[static_cast<std::size_t>(i)].stage);
  return longest;
}

std::vector<Action> with_lifespan_offload(const Schedule& schedule, const std::vector<Action>& actions, int stages) {
  const std::vector<ComputeStep> steps = compute_steps(actions);
  const std::vector<ActivationLife> lives = activation_lives(actions, steps);
  const std::set<int> longest = longest_lived(schedule, lives, stages);
  std::vector<Insertion> offloads;
  std::map<std::size_t, Insertion> reloads;  // by position of the backward
  for (const ActivationLife& life : lives) {
    if (!longest.contains(life.forward.stage) || life.needed <= life.made + 2) continue;
    offloads.push_back({.position = steps[life.made + 1].first, .action = move_of(Op::kOffload, life)});
    reloads[life.needed_at] = {.position = steps[life.needed - 1].first, .action = move_of(Op::kReload, life)};
  }
  for (const auto& [backward, reload] : reloads) offloads.push_back(reload);
  return with_insertions(actions, std::move(offloads));
}

}  // namespace

Schedule add_lifespan_offload(Schedule schedule, int stages) {
  if (stages < 0) throw ScheduleError(fmt::format("{} stages of a rank cannot be offloaded: give 0 or more", stages));
  require_unmoved(schedule);
  for (std::vector<Action>& actions : schedule.ranks) actions = with_lifespan_offload(schedule, actions, stages);
  return schedule;
}

}}  // namespace plumb::schedules
