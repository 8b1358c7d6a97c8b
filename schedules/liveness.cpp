#include "schedules/liveness.h"

#include <algorithm>

#include "schedules/weight_holders.h"

namespace plumb { inline namespace schedules {
namespace {

/// The activations that an action takes before it runs and gives back after it.
struct Turnover {
  int taken = 0;
  int given_back = 0;
};

Turnover turnover_of(Op op, bool has_backward) {
  switch (op) {
    case Op::kForward:
      return {.taken = 1, .given_back = has_backward ? 0 : 1};
    case Op::kBackward:
    case Op::kWeightGrad:
    case Op::kOffload:
    case Op::kEvict:
      return {.given_back = 1};
    case Op::kReload:
    case Op::kLoad:
      return {.taken = 1};
    default:
      return {};
  }
}

}  // namespace

std::vector<bool> stages_with_backward(const Schedule& schedule) {
  std::vector<bool> has_backward(schedule.stages.size(), false);
  const std::vector<int> weights = weight_holders(schedule);
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      const Op op = with_or_without_weights(action.op, weights[action.stage] >= 0);
      if (gives_weight_gradient(op)) has_backward[action.stage] = true;
    }
  }
  return has_backward;
}

std::vector<RankLiveness> liveness(const Schedule& schedule) {
  const std::vector<bool> has_backward = stages_with_backward(schedule);
  const std::vector<int> weights = weight_holders(schedule);
  std::vector<RankLiveness> ranks(schedule.ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    int held = 0;
    int evicted = 0;
    int& guests_of_partner = ranks[ranks.size() - 1 - r].guests;
    ranks[r].held.reserve(schedule.ranks[r].size());
    for (const Action& action : schedule.ranks[r]) {
      const Op op = with_or_without_weights(action.op, weights[action.stage] >= 0);
      const Turnover turnover = turnover_of(op, has_backward[action.stage]);
      held += turnover.taken;
      ranks[r].held.push_back(held);
      held -= turnover.given_back;
      if (action.op == Op::kEvict) ++evicted;
      if (action.op == Op::kLoad) --evicted;
      guests_of_partner = std::max(guests_of_partner, evicted);
    }
  }
  for (RankLiveness& rank : ranks) {
    rank.peak = rank.guests + (rank.held.empty() ? 0 : *std::ranges::max_element(rank.held));
  }
  return ranks;
}

}}  // namespace plumb::schedules
