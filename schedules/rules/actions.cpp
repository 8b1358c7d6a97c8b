#include "schedules/rules/rules.h"

#include <fmt/format.h>

namespace plumb { inline namespace schedules {
namespace {

void check_pair(const Schedule& schedule, int r, std::size_t i, Findings& found) {
  const std::vector<Action>& actions = schedule.ranks[r];
  const bool fits = is_compute(actions[i].op) && i + 1 < actions.size() && is_compute(actions[i + 1].op) &&
                    !actions[i + 1].overlaps_next && (i == 0 || !actions[i - 1].overlaps_next);
  if (!fits) {
    found.report(r, static_cast<std::int64_t>(i), Rule::kPair,
                 fmt::format("{} is paired with the next action, but a pair is exactly two compute actions side by "
                             "side; separate them",
                             to_text(actions[i])));
  }
}

/// Checks that a message of weights goes to a copy of its stage, on another rank.
void check_peer(const Schedule& schedule, int r, std::int64_t i, const Action& a, Findings& found) {
  const int stages = static_cast<int>(schedule.stages.size());
  if (a.peer < 0 || a.peer >= stages) {
    found.report(r, i, Rule::kForeign,
                 fmt::format("{} names stage {}, but there are stages 0 to {} only", to_text(a), a.peer, stages - 1));
    return;
  }
  const StagePlace& place = schedule.stages[a.stage];
  const StagePlace& peer = schedule.stages[a.peer];
  if (peer.model_part != place.model_part || peer.rank == place.rank) {
    found.report(r, i, Rule::kUnmatchedMessage,
                 fmt::format("{} is between stage {}, which is model part {} on rank {}, and stage {}, which is model "
                             "part {} on rank {}; name a copy on another rank, or remove it",
                             to_text(a), a.stage, place.model_part, place.rank, a.peer, peer.model_part, peer.rank));
  }
}

}  // namespace

ListedOps listed_ops(const Schedule& schedule) {
  ListedOps listed{};
  for_each_action(schedule,
                  [&listed](int, std::int64_t, const Action& a) { listed[static_cast<std::size_t>(a.op)] = true; });
  return listed;
}

std::vector<Violation> action_violations(const Schedule& schedule) {
  Findings found;
  const int stages = static_cast<int>(schedule.stages.size());
  for_each_action(schedule, [&](int r, std::int64_t i, const Action& a) {
    if (a.stage < 0 || a.stage >= stages) {
      found.report(
          r, i, Rule::kForeign,
          fmt::format("{} names stage {}, but there are stages 0 to {} only", to_text(a), a.stage, stages - 1));
      return;
    }
    if (has_microbatch(a.op) && (a.microbatch < 0 || a.microbatch >= schedule.microbatches)) {
      found.report(r, i, Rule::kForeign,
                   fmt::format("{} names micro-batch {}, but there are 0 to {} only", to_text(a), a.microbatch,
                               schedule.microbatches - 1));
    }
    if (a.part < 0) found.report(r, i, Rule::kForeign, fmt::format("{} has a negative part", to_text(a)));
    const int owner = schedule.stages[a.stage].rank;
    if (owner != r) {
      found.report(
          r, i, Rule::kMisplaced,
          fmt::format("{} is on rank {}, but stage {} lives on rank {}; move it there", to_text(a), r, a.stage, owner));
    }
    if (is_weight_message(a.op)) check_peer(schedule, r, i, a, found);
    if (a.overlaps_next) check_pair(schedule, r, static_cast<std::size_t>(i), found);
  });
  return found.take();
}

}}  // namespace plumb::schedules
