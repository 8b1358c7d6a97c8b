#include <algorithm>

#include <fmt/format.h>

#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/passes/insertions.h"
#include "schedules/passes/passes.h"
#include "schedules/weight_holders.h"

namespace plumb { inline namespace schedules {

Schedule add_copy_reductions(Schedule schedule) {
  const std::vector<bool> copied = stages_with_copies(schedule);
  if (std::ranges::find(copied, true) == copied.end() || weights_travel(schedule)) return schedule;
  if (is_asynchronous(schedule)) {
    throw ScheduleError(
        fmt::format("{} has copies of stages and steps its weights between micro-batches, which would let the copies "
                    "drift apart: use one lane",
                    schedule.name));
  }
  const std::vector<int> holders = weight_holders(schedule);
  for (std::vector<Action>& actions : schedule.ranks) {
    std::vector<std::size_t> behind_gradients(schedule.stages.size(), 0);
    std::vector<int> stages;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      if (gives_weight_gradient(action.op)) behind_gradients[holders[action.stage]] = position_behind(actions, i);
      if (action.op == Op::kOptimizerStep && copied[action.stage]) stages.push_back(action.stage);
    }
    std::ranges::stable_sort(stages, {}, [&](int stage) { return schedule.stages[stage].model_part; });
    std::vector<Insertion> insertions;
    std::size_t position = 0;
    for (const int stage : stages) {
      position = std::max(position, behind_gradients[stage]);
      insertions.push_back({.position = position, .action = {.op = Op::kReduceGrad, .stage = stage}});
    }
    actions = with_insertions(actions, std::move(insertions));
  }
  return schedule;
}

}}  // namespace plumb::schedules
