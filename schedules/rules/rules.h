#pragma once
// The rules of a schedule, one file for each kind. Each function returns its violations in any order; validate.h runs
// them.

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "schedules/dependencies/action_table.h"
#include "schedules/rules/validate.h"

namespace plumb { inline namespace schedules {

/// [op] true for an operation that the schedule lists.
using ListedOps = std::array<bool, kOpCount>;
ListedOps listed_ops(const Schedule& schedule);

/// The schedule and the tables that the rules look up. It is made once the placement and each action by itself are in
/// order.
struct RuleContext {
  explicit RuleContext(const Schedule& s)
      : schedule(s), table(s), ids(action_ids(s)), neighbors(stage_neighbors(s)), listed(listed_ops(s)) {}

  bool lists(Op op) const { return listed[static_cast<std::size_t>(op)]; }

  const Schedule& schedule;
  ActionTable table;
  ActionIds ids;
  StageNeighbors neighbors;
  ListedOps listed;
};

/// Collects the violations that a rule finds: only the first kMostFindings, so that garbage does not fill the memory.
class Findings {
 public:
  static constexpr std::size_t kMostFindings = 1000;

  void report(int rank, std::int64_t position, Rule rule, std::string message) {
    if (found_.size() == kMostFindings) return;
    found_.push_back({rank, static_cast<int>(position), rule, std::move(message)});
  }
  bool full() const { return found_.size() == kMostFindings; }
  std::vector<Violation> take() { return std::move(found_); }

 private:
  std::vector<Violation> found_;
};

/// Calls visit(rank, position, action) for each action, rank by rank: action ids count these calls.
template <typename Visit>
void for_each_action(const Schedule& schedule, Visit visit) {
  for (int r = 0; r < static_cast<int>(schedule.ranks.size()); ++r) {
    for (std::size_t i = 0; i < schedule.ranks[r].size(); ++i) {
      visit(r, static_cast<std::int64_t>(i), schedule.ranks[r][i]);
    }
  }
}

/// Rules of stages, ranks, model parts and lanes.
std::vector<Violation> placement_violations(const Schedule& schedule);

/// Rules of each action by itself: everything that it names exists, and on its rank; pairs are pairs.
std::vector<Violation> action_violations(const Schedule& schedule);

/// There are about as many forwards as stages, micro-batches and slices ask for. A schedule that breaks this rule is
/// not looked at any further: tables by stage, micro-batch and slice would be far larger than the schedule.
std::vector<Violation> size_violations(const Schedule& schedule);

/// Every stage sees every micro-batch of its lane once, whole or split, and each action stands behind its inputs.
std::vector<Violation> microbatch_violations(const RuleContext& context);

/// Sends and receives match, stand on the right side of their actions and in one order on each channel.
std::vector<Violation> message_violations(const RuleContext& context);

/// No rank holds more activations than its limit (ValidationLimits::max_activations).
std::vector<Violation> memory_violations(const Schedule& schedule, const std::vector<int>& max_activations);

/// OPTIMIZER_STEPs take every weight gradient, wherever it travels; REDUCE_GRAD, UNSHARD and RESHARD fit the actions around them, and copies
/// of a stage reduce equally often.
std::vector<Violation> weight_violations(const RuleContext& context);

/// Messages of weights match, stand in one order on each channel, and bring weights ahead of what uses them; one copy of
/// each model part owns its weights (schedules/dependencies/weight_messages.h).
std::vector<Violation> weight_message_violations(const Schedule& schedule);

/// The version that the weight policy gives a micro-batch is made when an action uses it. The schedule must break no
/// rule of micro-batches.
std::vector<Violation> version_violations(const RuleContext& context);

/// OFFLOAD and EVICT take activations that a forward has made and a backward will need; RELOAD and LOAD bring them back
/// ahead of that backward.
std::vector<Violation> move_violations(const RuleContext& context);

}}  // namespace plumb::schedules
