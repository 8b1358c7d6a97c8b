#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/replay.h"
#include "schedules/action_table.h"
#include "schedules/error.h"
#include "schedules/validate.h"

namespace plumb {
namespace {

[[noreturn]] void refuse(const Schedule& schedule, const std::string& why) {
  throw ScheduleError(fmt::format("{}: {}", schedule.name.empty() ? "the schedule" : schedule.name, why));
}

void require_supported(const Schedule& schedule, const ProcessGrid& grid) {
  for (const std::vector<Action>& actions : schedule.ranks)
    for (const Action& action : actions) {
      if ((action.op == Op::kUnshard || action.op == Op::kReshard) && grid.data > 1)
        refuse(schedule,
               fmt::format("{} shards parameters over {} replicas, which this executor does not do; lower with "
                           "ZeRO stage 0",
                           to_text(action), grid.data));
    }
  for (std::size_t a = 0; a < schedule.stages.size(); ++a)
    for (std::size_t b = a + 1; b < schedule.stages.size(); ++b)
      if (schedule.stages[a].model_part == schedule.stages[b].model_part &&
          schedule.stages[a].rank == schedule.stages[b].rank)
        refuse(schedule,
               fmt::format("stages {} and {} are copies of one model part on one rank; place them on different "
                           "ranks",
                           a, b));
}

/// Messages between ranks and OPTIMIZER_STEPs must be there: a schedule straight from its generator is not replayed.
void require_lowered(const Schedule& schedule, const StageNeighbors& neighbors) {
  const auto has = [&](auto wanted) {
    return std::ranges::any_of(schedule.ranks,
                               [&](const auto& actions) { return std::ranges::any_of(actions, wanted); });
  };
  bool crosses_ranks = false;
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    const int next = neighbors.successor[stage];
    crosses_ranks |= next >= 0 && schedule.stages[static_cast<std::size_t>(next)].rank != schedule.stages[stage].rank;
  }
  const bool trains = has([](const Action& action) { return gives_weight_gradient(action.op); });
  const bool steps = has([](const Action& action) { return action.op == Op::kOptimizerStep; });
  if ((crosses_ranks && !has_messages(schedule)) || (trains && !steps))
    refuse(schedule, "it has no messages or no OPTIMIZER_STEPs; lower it first");
}

/// Behind which actions gradients are summed: the last of the stage's weight gradients and REDUCE_GRADs before each
/// OPTIMIZER_STEP of a stage that has copies. [rank][position] as in ReplayPlan.
std::vector<std::vector<std::int64_t>> places_of_sums(const Schedule& schedule, const ProcessGrid& grid) {
  std::vector<int> copies(schedule.stages.size(), 0);
  for (std::size_t stage = 0; stage < copies.size(); ++stage)
    copies[stage] = grid.data * grid.context *
                    static_cast<int>(std::ranges::count(schedule.stages, schedule.stages[stage].model_part,
                                                        &StagePlace::model_part));
  std::vector<std::vector<std::int64_t>> sums;
  for (const std::vector<Action>& actions : schedule.ranks) {
    sums.emplace_back(actions.size(), -1);
    std::vector<std::size_t> last(copies.size(), 0);
    std::vector<std::int64_t> reduction(copies.size(), -1);  // the last one since the stage's step
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto stage = static_cast<std::size_t>(actions[i].stage);
      if (copies[stage] == 1) continue;
      if (actions[i].op == Op::kReduceGrad) reduction[stage] = static_cast<std::int64_t>(i);
      if (actions[i].op == Op::kReduceGrad || gives_weight_gradient(actions[i].op)) last[stage] = i;
      if (actions[i].op != Op::kOptimizerStep) continue;
      if (reduction[stage] < 0)
        refuse(schedule,
               fmt::format("{} comes without a REDUCE_GRAD although the stage has {} copies; lower it for data "
                           "parallelism",
                           to_text(actions[i]), copies[stage]));
      sums.back()[last[stage]] = reduction[stage];
      reduction[stage] = -1;
    }
  }
  return sums;
}

/// Two ends of a tied table on one rank: the first OPTIMIZER_STEP of either needs the gradients of both.
void require_tied_order(const Schedule& schedule, const TiedStages& tied) {
  if (is_asynchronous(schedule))
    refuse(schedule,
           "embedding and head share their table, and the stages take their steps at different times; untie "
           "them, or use a synchronous schedule");
  const int rank = schedule.stages[static_cast<std::size_t>(tied.embedding)].rank;
  if (rank != schedule.stages[static_cast<std::size_t>(tied.head)].rank) return;
  bool stepped = false;
  for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
    if (action.stage != tied.embedding && action.stage != tied.head) continue;
    if (action.op == Op::kOptimizerStep) stepped = true;
    if (stepped && (gives_weight_gradient(action.op) || action.op == Op::kReduceGrad))
      refuse(schedule,
             fmt::format("{} comes after an OPTIMIZER_STEP that needs it, because the embedding and the head share "
                         "their table; move that step behind it",
                         to_text(action)));
  }
}

}  // namespace

ReplayPlan plan_replay(const Schedule& lowered, const ProcessGrid& grid, std::vector<TiedStages> tied) {
  require_valid(lowered);
  if (grid.pipeline != static_cast<int>(lowered.ranks.size()))
    refuse(lowered,
           fmt::format("it is for {} pipeline ranks and the grid has {}", lowered.ranks.size(), grid.pipeline));
  require_supported(lowered, grid);
  ReplayPlan plan{.schedule = lowered,
                  .grid = grid,
                  .tied = std::move(tied),
                  .neighbors = stage_neighbors(lowered),
                  .slices = ActionTable(lowered).parts()};
  require_lowered(lowered, plan.neighbors);
  for (const TiedStages& stages : plan.tied) require_tied_order(lowered, stages);
  plan.sums_gradients = places_of_sums(lowered, grid);
  return plan;
}

}  // namespace plumb
