#include "planner/search/held_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "schedules/liveness.h"

namespace plumb { inline namespace planner {
namespace {

using Counts = std::vector<HeldCount>;  // [kind of the rank]

/// True if `one` holds at least as much as `other` in every form.
bool covers(const Counts& one, const Counts& other) {
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i].forward < other[i].forward || one[i].rebuilt < other[i].rebuilt || one[i].waiting < other[i].waiting)
      return false;
  }
  return true;
}

/// The moments of one rank that no other covers, by the action and its stage's kind.
class Frontier {
 public:
  void note(int kind, bool forward, const Counts& held) {
    std::vector<Counts>& known = moments_[{kind, forward}];
    if (std::ranges::any_of(known, [&](const Counts& other) { return covers(other, held); })) return;
    std::erase_if(known, [&](const Counts& other) { return covers(held, other); });
    known.push_back(held);
  }

  void write(HeldOrder& order, HeldOrder::Rank& rank) const {
    for (const auto& [action, known] : moments_) {
      for (const Counts& counts : known) {
        rank.moments.push_back({.kind = action.first, .forward = action.second, .first = order.counts.size()});
        order.counts.insert(order.counts.end(), counts.begin(), counts.end());
      }
    }
  }

 private:
  std::map<std::pair<int, bool>, std::vector<Counts>> moments_;
};

/// Follows a rank's actions. `place` is where a stage's kind stands among the rank's; `has_backward` is by stage.
void walk(const std::vector<Action>& actions, std::span<const int> kind_of_stage, const std::vector<int>& place,
          const std::vector<bool>& has_backward, Counts held, Frontier& frontier) {
  std::set<std::pair<int, int>> rebuilt;  // (stage, micro-batch) by R
  for (const Action& action : actions) {
    HeldCount& count = held[place[action.stage]];
    const auto note = [&](bool forward) { frontier.note(kind_of_stage[action.stage], forward, held); };
    switch (action.op) {
      case Op::kForward:
        ++count.forward;
        note(true);
        if (!has_backward[action.stage]) --count.forward;
        break;
      case Op::kRecompute:
        ++count.rebuilt;
        rebuilt.insert({action.stage, action.microbatch});
        note(true);
        break;
      case Op::kBackward:
      case Op::kInputGrad:
        if (!rebuilt.contains({action.stage, action.microbatch})) ++count.rebuilt;
        note(false);
        --count.forward;
        --count.rebuilt;
        if (action.op == Op::kInputGrad) ++count.waiting;
        break;
      case Op::kWeightGrad:
        note(false);
        --count.waiting;
        break;
      case Op::kOffload:
        --count.forward;
        break;
      case Op::kReload:
        ++count.forward;
        break;
      default:
        break;
    }
  }
}

}  // namespace

HeldOrder held_order(const Schedule& schedule, std::span<const int> kind_of_stage) {
  HeldOrder order;
  order.ranks.resize(schedule.ranks.size());
  std::vector<int> place(schedule.stages.size());
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    auto& kinds = order.ranks[schedule.stages[stage].rank].kinds;
    auto known = std::ranges::find(kinds, kind_of_stage[stage], &std::pair<int, int>::first);
    if (known == kinds.end()) known = kinds.insert(known, {kind_of_stage[stage], 0});
    ++known->second;
    place[stage] = static_cast<int>(known - kinds.begin());
  }
  const std::vector<bool> has_backward = stages_with_backward(schedule);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    Frontier frontier;
    walk(schedule.ranks[rank], kind_of_stage, place, has_backward, Counts(order.ranks[rank].kinds.size()), frontier);
    frontier.write(order, order.ranks[rank]);
  }
  return order;
}

std::vector<std::int64_t> memory_in_issue_order(const CostTable& kinds, const HeldOrder& order) {
  std::vector<std::int64_t> peaks;
  peaks.reserve(order.ranks.size());
  for (const HeldOrder::Rank& rank : order.ranks) {
    std::int64_t state = 0;
    for (const auto& [kind, stages] : rank.kinds) {
      const StageMemory& memory = kinds.stages[kind].memory;
      state += stages * (memory.parameter_bytes + memory.gradient_bytes + memory.optimizer_bytes);
    }
    std::int64_t most = 0;
    for (const HeldMoment& moment : rank.moments) {
      const StageMemory& running = kinds.stages[moment.kind].memory;
      std::int64_t bytes = running.unsharded_bytes +
                           (moment.forward ? running.forward_workspace_bytes : running.backward_workspace_bytes);
      for (std::size_t i = 0; i < rank.kinds.size(); ++i) {
        const StageMemory& memory = kinds.stages[rank.kinds[i].first].memory;
        const HeldCount& count = order.counts[moment.first + i];
        const std::int64_t left = memory.forward_bytes + memory.recompute_bytes - memory.released_at_input_grad_bytes;
        bytes += count.forward * memory.forward_bytes + count.rebuilt * memory.recompute_bytes + count.waiting * left;
      }
      most = std::max(most, bytes);
    }
    peaks.push_back(state + most);
  }
  return peaks;
}

}}  // namespace plumb::planner
