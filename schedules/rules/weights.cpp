#include "schedules/rules/rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "schedules/dependencies/inner_reductions.h"
#include "schedules/dependencies/weight_messages.h"
#include "schedules/weight_holders.h"

namespace plumb { inline namespace schedules {
namespace {

/// Checks that the OPTIMIZER_STEPs of a schedule, if it has any, take every weight gradient, and that each takes some.
/// SEND_WGRAD takes those of its stage, and RECV_WGRAD brings some.
void check_optimizer(const RuleContext& c, Findings& found) {
  const bool has_steps = c.lists(Op::kOptimizerStep);
  if (!has_steps && is_asynchronous(c.schedule)) {
    found.report(-1, -1, Rule::kOptimizer,
                 fmt::format("the weights are {} but no OPTIMIZER_STEP ever makes a version; add them",
                             policy_name(c.schedule.weights)));
  }
  if (!has_steps) return;
  const bool travel = weights_travel(c.schedule);
  const std::vector<int> holders = weight_holders(c.schedule);
  std::vector<int> pending(c.schedule.stages.size(), 0);
  std::vector<int> steps(c.schedule.stages.size(), 0);
  for_each_action(c.schedule, [&](int r, std::int64_t i, const Action& a) {
    const int holder = holders[a.stage] < 0 ? a.stage : holders[a.stage];
    if (gives_weight_gradient(a.op) || a.op == Op::kRecvWeightGrad) {
      ++pending[holder];
      if (steps[holder] > 0 && !is_asynchronous(c.schedule)) {
        found.report(r, i, Rule::kOptimizer,
                     fmt::format("{} comes behind the OPTIMIZER_STEP of its stage, which must take it; list the "
                                 "step last",
                                 to_text(a)));
      }
    }
    if (a.op != Op::kOptimizerStep && a.op != Op::kSendWeightGrad) return;
    if (pending[holder] == 0) {
      found.report(r, i, Rule::kOptimizer,
                   fmt::format("{} has no weight gradient to take; list it behind one, or remove it", to_text(a)));
    }
    pending[holder] = 0;
    if (a.op == Op::kOptimizerStep) ++steps[holder];
  });
  for (std::size_t s = 0; s < pending.size(); ++s) {
    if (pending[s] > 0 && (steps[s] == 0 || is_asynchronous(c.schedule))) {
      found.report(
          c.schedule.stages[s].rank, -1, Rule::kOptimizer,
          fmt::format("stage {} ends with {} weight gradients that no OPTIMIZER_STEP takes; add {}OPTIMIZER_STEP{}", s,
                      pending[s], s, travel ? ", or a SEND_WGRAD to the stage that has it" : ""));
    }
  }
}

/// Checks that parameters are dropped only if they are gathered, or have come from a copy.
void check_sharding(const RuleContext& c, Findings& found) {
  if (!c.lists(Op::kReshard)) return;
  std::vector<int> gathered(c.schedule.stages.size(), 0);
  for_each_action(c.schedule, [&](int r, std::int64_t i, const Action& a) {
    if (a.op == Op::kUnshard || a.op == Op::kRecvWeights) ++gathered[a.stage];
    if (a.op == Op::kReshard && std::exchange(gathered[a.stage], 0) == 0) {
      found.report(r, i, Rule::kSharding,
                   fmt::format("{} drops parameters that were not gathered; add {}UNSHARD ahead", to_text(a), a.stage));
    }
  });
}

/// Weight gradients of a stage so far, and how many of them each of its buckets has reduced.
struct Reductions {
  int gradients = 0;
  std::vector<int> reduced;  ///< [bucket]
};

/// Returns [stage] counts of nothing done yet; there are no buckets where gradients are not reduced.
std::vector<Reductions> no_reductions(const Schedule& schedule) {
  const std::vector<bool> copied = stages_with_copies(schedule);
  std::vector<Reductions> stages(schedule.stages.size());
  const bool reduces = !weights_travel(schedule);
  for (std::size_t s = 0; s < copied.size(); ++s) stages[s].reduced.resize(copied[s] && reduces ? 1 : 0);
  for_each_action(schedule, [&](int, std::int64_t, const Action& a) {
    const std::size_t buckets = static_cast<std::size_t>(a.part) + 1;
    if (a.op == Op::kReduceGrad && stages[a.stage].reduced.size() < buckets) stages[a.stage].reduced.resize(buckets);
  });
  return stages;
}

/// Checks that gradients that are reduced, as those of copies must be, are all reduced before they are used, bucket by
/// bucket.
void check_reductions(const RuleContext& c, Findings& found) {
  if (!c.lists(Op::kOptimizerStep)) return;
  const bool copies = has_copies(c.schedule);
  const std::vector<int> holders = weight_holders(c.schedule);
  std::vector<Reductions> stages = no_reductions(c.schedule);
  for (std::size_t r = 0; r < c.schedule.ranks.size(); ++r) {
    const std::vector<Action>& actions = c.schedule.ranks[r];
    const std::vector<std::int64_t> hosts = hosts_of_reductions(actions, copies);
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& a = actions[i];
      Reductions& stage = stages[holders[a.stage] < 0 ? a.stage : holders[a.stage]];
      // A bucket inside its host holds the host's gradient as well.
      if (a.op == Op::kReduceGrad) stage.reduced[a.part] = stage.gradients + (hosts[i] >= 0 ? 1 : 0);
      if (gives_weight_gradient(a.op)) ++stage.gradients;
      if (a.op != Op::kOptimizerStep) continue;
      const auto behind = std::ranges::find_if(stage.reduced, [&](int reduced) { return reduced < stage.gradients; });
      if (behind == stage.reduced.end()) continue;
      const auto bucket = static_cast<std::int16_t>(behind - stage.reduced.begin());
      found.report(static_cast<int>(r), static_cast<std::int64_t>(i), Rule::kSharding,
                   fmt::format("{} takes {} weight gradients that are not reduced; add {} ahead", to_text(a),
                               stage.gradients - *behind,
                               to_text(Action{.op = Op::kReduceGrad, .part = bucket, .stage = a.stage})));
    }
  }
}

/// Checks that buckets inside one action are reduced in the order in which they are complete.
void check_inner_order(const RuleContext& c, Findings& found) {
  if (!c.lists(Op::kReduceGrad)) return;
  const bool copies = has_copies(c.schedule);
  for (std::size_t r = 0; r < c.schedule.ranks.size(); ++r) {
    const std::vector<Action>& actions = c.schedule.ranks[r];
    const std::vector<std::int64_t> hosts = hosts_of_reductions(actions, copies);
    std::int64_t host = -1;
    int bucket = -1;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (hosts[i] < 0) continue;
      if (hosts[i] == host && actions[i].part < bucket) {
        found.report(static_cast<int>(r), static_cast<std::int64_t>(i), Rule::kSharding,
                     fmt::format("{} stands behind bucket {}, which is complete later; list the buckets inside {} in "
                                 "ascending order",
                                 to_text(actions[i]), bucket, to_text(actions[host])));
      }
      host = hosts[i];
      bucket = actions[i].part;
    }
  }
}

/// Checks that the REDUCE_GRADs of copies, which are collectives of all of them, are listed equally often.
void check_copies(const RuleContext& c, Findings& found) {
  if (!c.lists(Op::kReduceGrad)) return;
  const std::vector<bool> copied = stages_with_copies(c.schedule);
  std::map<std::pair<int, int>, int> listed;  // (stage, part)
  for_each_action(c.schedule, [&](int, std::int64_t, const Action& a) {
    if (a.op == Op::kReduceGrad && copied[a.stage]) ++listed[{a.stage, a.part}];
  });
  const std::vector<int> weights = weight_holders(c.schedule);
  std::map<int, std::vector<int>> holders;  // model part -> stages
  for (int stage = 0; stage < static_cast<int>(c.schedule.stages.size()); ++stage)
    if (weights[stage] == stage) holders[c.schedule.stages[stage].model_part].push_back(stage);
  std::set<std::pair<int, int>> reported;
  for (const auto& [place, count] : listed) {
    const auto [stage, part] = place;
    for (const int copy : holders[c.schedule.stages[stage].model_part]) {
      const StagePlace& other = c.schedule.stages[copy];
      const auto at_copy = listed.find({copy, part});
      const int copy_count = at_copy == listed.end() ? 0 : at_copy->second;
      if (copy_count >= count) continue;
      if (!reported.insert({copy, part}).second) continue;
      const Action wanted{.op = Op::kReduceGrad, .part = static_cast<std::int16_t>(part), .stage = copy};
      found.report(
          other.rank, -1, Rule::kSharding,
          fmt::format("{} is listed {} times, but stage {}, a copy of stage {}, reduces {} times with it; list "
                      "them equally often",
                      to_text(wanted), copy_count, stage, copy, count));
    }
  }
}

}  // namespace

std::vector<Violation> weight_violations(const RuleContext& c) {
  Findings found;
  check_optimizer(c, found);
  check_sharding(c, found);
  check_reductions(c, found);
  check_inner_order(c, found);
  check_copies(c, found);
  return found.take();
}

}}  // namespace plumb::schedules
