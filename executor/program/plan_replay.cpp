#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "executor/program/replay_plan.h"
#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/inner_reductions.h"
#include "schedules/dependencies/like_copies.h"
#include "schedules/dependencies/shards.h"
#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/phases.h"
#include "schedules/rules/validate.h"
#include "schedules/weight_holders.h"

namespace plumb { inline namespace executor {
namespace {

[[noreturn]] void refuse(const Schedule& schedule, const std::string& why) {
  throw ScheduleError(fmt::format("{}: {}", schedule.name.empty() ? "the schedule" : schedule.name, why));
}

void require_supported(const Schedule& schedule) {
  if (has_shards(schedule))
    refuse(schedule, "its stages are shards of a model part, which no backend exchanges; give an order without shards");
  if (std::ranges::count(weight_holders(schedule), -1) > 0)
    refuse(schedule,
           "it has stages without weights, pieces of layers that no backend runs; give an order of whole layers");
  if (weights_travel(schedule))
    refuse(schedule, "its weights travel from rank to rank, which no backend sends; give an order whose weights stay");
  for (std::size_t a = 0; a < schedule.stages.size(); ++a)
    for (std::size_t b = a + 1; b < schedule.stages.size(); ++b)
      if (schedule.stages[a].model_part == schedule.stages[b].model_part &&
          schedule.stages[a].rank == schedule.stages[b].rank)
        refuse(schedule,
               fmt::format("stages {} and {} are copies of one model part on one rank; place them on different "
                           "ranks",
                           a, b));
}

/// Requires meshes of one shape for ranks that hold the same stage or each other's activations.
void require_like_meshes(const Schedule& schedule, const RankGrid& grid) {
  const auto expect = [&](int a, int b, const std::string& what) {
    if (mesh_of(grid, a) != mesh_of(grid, b))
      refuse(schedule, fmt::format("{} lie on pipeline ranks {} and {}, whose meshes have different shapes: give these "
                                   "two the same",
                                   what, a, b));
  };
  for (const StagePlace& place : schedule.stages) {
    const auto first = std::ranges::find(schedule.stages, place.model_part, &StagePlace::model_part);
    expect(first->rank, place.rank, fmt::format("copies of model part {}", place.model_part));
  }
  const int ranks = static_cast<int>(schedule.ranks.size());
  for (int rank = 0; rank < ranks; ++rank)
    for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)])
      if (action.op == Op::kEvict) expect(rank, ranks - 1 - rank, "a stage and the partner of its EVICTs");
}

/// Requires messages between ranks and OPTIMIZER_STEPs: a schedule straight from its generator cannot be replayed.
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

/// Requires that a stage's weights are whole where it computes: always (ZeRO 0), from the UNSHARD behind its step on (1
/// and 2), or from UNSHARD to RESHARD (3), with no gathered weights across an OPTIMIZER_STEP.
void require_gathering(const Schedule& schedule, const std::vector<int>& copies, int zero) {
  for (const std::vector<Action>& actions : schedule.ranks) {
    std::vector<bool> whole(copies.size(), zero < 3);
    const auto expect = [&](const Action& action, bool holds, std::string_view why) {
      if (!holds) refuse(schedule, fmt::format("{} {}; lower it with ZeRO stage {}", to_text(action), why, zero));
    };
    for (const Action& action : actions) {
      const auto stage = static_cast<std::size_t>(action.stage);
      if (copies[stage] == 1) continue;
      if (is_compute(action.op) && action.op != Op::kOptimizerStep)
        expect(action, whole[stage], "comes where the stage's weights are not whole");
      if (action.op == Op::kUnshard) {
        expect(action, zero > 0 && !whole[stage], "gathers weights that are whole");
        whole[stage] = true;
      }
      if (action.op == Op::kReshard) {
        expect(action, zero == 3, "drops weights that are not sharded");
        whole[stage] = false;
      }
      if (action.op == Op::kOptimizerStep) {
        expect(action, zero < 3 || !whole[stage], "changes weights that stand gathered");
        whole[stage] = zero == 0;
      }
    }
    for (std::size_t stage = 0; stage < copies.size(); ++stage)
      if (copies[stage] > 1 && whole[stage] != (zero < 3))
        refuse(schedule, fmt::format("it ends with the weights of stage {} {}; lower it with ZeRO stage {}", stage,
                                     zero < 3 ? "not whole" : "gathered", zero));
  }
}

/// The gradients and reductions between two OPTIMIZER_STEPs of a stage.
struct GradientTail {
  std::int64_t last_gradient = -1;                 // position of the last weight gradient
  std::map<std::int16_t, std::size_t> reductions;  // [bucket] position of its last REDUCE_GRAD
};

/// Places the reductions of whole gradients (ZeRO 0, 1) before one OPTIMIZER_STEP. Each bucket is reduced once: inside
/// the last weight gradient if that is the host of its REDUCE_GRAD, otherwise not before that gradient.
void place_tail(std::vector<PlacedReductions>& placed, const GradientTail& tail,
                const std::vector<std::int64_t>& hosts) {
  for (const auto& [bucket, position] : tail.reductions) {
    if (hosts[position] >= 0)
      placed[static_cast<std::size_t>(hosts[position])].inside.push_back(position);
    else
      placed[std::max(position, static_cast<std::size_t>(std::max<std::int64_t>(0, tail.last_gradient)))]
          .behind.push_back(position);
  }
}

/// Returns ReplayPlan::reductions of one rank.
std::vector<PlacedReductions> place_reductions(const Schedule& schedule, const std::vector<Action>& actions,
                                               const std::vector<int>& copies, int zero) {
  std::vector<PlacedReductions> placed(actions.size());
  std::vector<GradientTail> tails(copies.size());
  const std::vector<std::int64_t> hosts = hosts_of_reductions(actions, has_copies(schedule));
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const auto stage = static_cast<std::size_t>(actions[i].stage);
    if (copies[stage] == 1) continue;
    GradientTail& tail = tails[stage];
    if (gives_weight_gradient(actions[i].op)) tail.last_gradient = static_cast<std::int64_t>(i);
    if (actions[i].op == Op::kReduceGrad) {
      tail.reductions[actions[i].part] = i;
      if (zero >= 2) placed[i].behind.push_back(i);
    }
    if (actions[i].op != Op::kOptimizerStep) continue;
    if (tail.reductions.empty())
      refuse(schedule, fmt::format("{} comes without a REDUCE_GRAD although the stage has {} copies; lower it for data "
                                   "parallelism",
                                   to_text(actions[i]), copies[stage]));
    if (zero >= 2 && tail.last_gradient > static_cast<std::int64_t>(tail.reductions.rbegin()->second))
      refuse(schedule, fmt::format("{} comes behind a weight gradient without a REDUCE_GRAD; lower it with ZeRO "
                                   "stage {}",
                                   to_text(actions[i]), zero));
    if (zero < 2) place_tail(placed, tail, hosts);
    tail = {};
  }
  return placed;
}

/// Requires that every rank comes to its first OPTIMIZER_STEP with all its gradients complete, so that all can agree
/// there.
void require_meeting(const Schedule& schedule) {
  if (is_asynchronous(schedule))
    refuse(schedule,
           "gradients are clipped, or the loss is scaled, by what all ranks agree on before each step, and its stages "
           "take their steps at different times; use a synchronous schedule, or neither of the two");
  for (const std::vector<Action>& actions : schedule.ranks) {
    bool stepped = false;
    for (const Action& action : actions) {
      if (action.op == Op::kOptimizerStep) stepped = true;
      if (stepped && (gives_weight_gradient(action.op) || action.op == Op::kReduceGrad))
        refuse(schedule,
               fmt::format("{} comes behind the rank's first OPTIMIZER_STEP, before which all ranks agree on the "
                           "gradients' scale; move the steps to the end",
                           to_text(action)));
    }
    if (!stepped)
      refuse(schedule, "a rank has no OPTIMIZER_STEP, before which all ranks agree on the gradients' scale");
  }
}

/// Requires that all gradients of a rank's tied tables are complete before the first OPTIMIZER_STEP of a stage with
/// one.
void require_tied_order(const Schedule& schedule, const std::vector<TiedStages>& tied) {
  if (tied.empty()) return;
  if (is_asynchronous(schedule))
    refuse(schedule,
           "embedding and head share their table, and the stages take their steps at different times; untie "
           "them, or use a synchronous schedule");
  const auto is_tied = [&](int stage) {
    return std::ranges::any_of(tied, [stage](const TiedStages& t) { return t.embedding == stage || t.head == stage; });
  };
  for (const std::vector<Action>& actions : schedule.ranks) {
    bool stepped = false;
    for (const Action& action : actions) {
      if (!is_tied(action.stage)) continue;
      if (action.op == Op::kOptimizerStep) stepped = true;
      if (stepped && (gives_weight_gradient(action.op) || action.op == Op::kReduceGrad))
        refuse(schedule,
               fmt::format("{} comes after an OPTIMIZER_STEP that needs it, because the embedding and the head share "
                           "their table; move that step behind it",
                           to_text(action)));
    }
  }
}

}  // namespace

bool interleaves(const ReplayPolicy& policy, const Action& first, const Action& second) {
  return take_turns(first, second) && !(policy.layerwise && first.stage == second.stage);
}

std::vector<int> copies_of_stages(const Schedule& schedule, const RankGrid& grid) {
  std::vector<int> copies;
  for (const StagePlace& place : schedule.stages)
    copies.push_back(mesh_of(grid, place.rank).data * grid.grid.context *
                     static_cast<int>(std::ranges::count(schedule.stages, place.model_part, &StagePlace::model_part)));
  return copies;
}

ReplayPlan plan_replay(const Schedule& lowered, const RankGrid& grid, std::vector<TiedStages> tied,
                       const ReplayPolicy& policy) {
  require_valid(lowered);
  if (grid.meshes.size() != lowered.ranks.size())
    refuse(lowered,
           fmt::format("it is for {} pipeline ranks and the grid has {}", lowered.ranks.size(), grid.meshes.size()));
  require_supported(lowered);
  require_like_meshes(lowered, grid);
  ReplayPlan plan{.schedule = lowered,
                  .grid = grid,
                  .tied = std::move(tied),
                  .neighbors = stage_neighbors(lowered),
                  .slices = ActionTable(lowered).parts(),
                  .policy = policy};
  require_lowered(lowered, plan.neighbors);
  require_tied_order(lowered, plan.tied);
  if (policy.agrees) require_meeting(lowered);
  const std::vector<int> copies = copies_of_stages(lowered, grid);
  if (policy.zero > 0 && is_asynchronous(lowered))
    refuse(lowered, "its stages keep several versions of their weights, which are not sharded; use ZeRO stage 0");
  require_gathering(lowered, copies, policy.zero);
  if (policy.zero >= 2)
    if (const std::string why = why_copies_cannot_share(lowered, policy.zero == 3); !why.empty()) refuse(lowered, why);
  for (const std::vector<Action>& actions : lowered.ranks)
    plan.reductions.push_back(place_reductions(lowered, actions, copies, policy.zero));
  return plan;
}

}}  // namespace plumb::executor
