#include "schedules/passes/torch_lowering.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace schedules {
namespace {

Action stage_action(Op op, int stage) {
  return {.op = op, .stage = stage};
}

/// Returns the first `count` different stages from position i on, in the order in which they come.
std::vector<int> next_stages(const std::vector<Action>& actions, std::size_t i, std::size_t count) {
  std::vector<int> stages;
  for (; i < actions.size() && stages.size() < count; ++i) {
    if (std::ranges::find(stages, actions[i].stage) == stages.end()) stages.push_back(actions[i].stage);
  }
  return stages;
}

std::vector<Action> with_gathering(const std::vector<Action>& actions, std::size_t unsharded_stages) {
  std::vector<Action> result;
  std::set<int> gathered;
  const auto fetch_and_evict = [&](std::size_t i) {
    const std::vector<int> next = next_stages(actions, i, unsharded_stages);
    std::vector<int> evicted;
    for (const int stage : gathered) {
      if (std::ranges::find(next, stage) == next.end()) evicted.push_back(stage);
    }
    for (const int stage : evicted) {
      gathered.erase(stage);
      result.push_back(stage_action(Op::kReshard, stage));
    }
    for (const int stage : next) {
      if (gathered.insert(stage).second) result.push_back(stage_action(Op::kUnshard, stage));
    }
  };
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const bool second_of_pair = i > 0 && actions[i - 1].overlaps_next;
    if (!second_of_pair) fetch_and_evict(i);
    result.push_back(actions[i]);
  }
  for (const int stage : gathered) result.push_back(stage_action(Op::kReshard, stage));
  return result;
}

std::vector<Action> with_reductions(const std::vector<Action>& actions, int microbatches, std::size_t stages) {
  std::vector<int> gradients(stages, 0);
  std::vector<Action> result;
  std::vector<Action> behind;  // a pair is not torn apart
  for (const Action& action : actions) {
    result.push_back(action);
    if (gives_weight_gradient(action.op) && ++gradients[action.stage] == microbatches) {
      behind.push_back(stage_action(Op::kReduceGrad, action.stage));
    }
    if (action.overlaps_next) continue;
    result.insert(result.end(), behind.begin(), behind.end());
    behind.clear();
  }
  return result;
}

/// Plays the ranks in turn and writes messages where they come up.
class MessageWriter {
 public:
  explicit MessageWriter(const Schedule& schedule)
      : schedule_(schedule), neighbors_(stage_neighbors(schedule)), cursor_(schedule.ranks.size(), 0) {
    for (auto& done : done_)
      done.assign(schedule.stages.size() * static_cast<std::size_t>(schedule.microbatches), false);
  }

  std::vector<std::vector<Action>> write() {
    written_.resize(schedule_.ranks.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < cursor_.size(); ++r) moved = take_turn(r) || moved;
    }
    for (std::size_t r = 0; r < cursor_.size(); ++r) {
      if (cursor_[r] == schedule_.ranks[r].size()) continue;
      throw ScheduleError(fmt::format("rank {}, position {}: {} waits for ever; `plumb schedule check` names the cycle",
                                      r, cursor_[r], to_text(schedule_.ranks[r][cursor_[r]])));
    }
    return std::move(written_);
  }

 private:
  enum Made : std::size_t { kActivation, kGradient };  // a stage's micro-batch has it, made on its own rank or received

  bool take_turn(std::size_t r) {
    const std::vector<Action>& actions = schedule_.ranks[r];
    std::size_t& i = cursor_[r];
    if (i == actions.size()) return false;
    const std::size_t count = actions[i].overlaps_next ? 2 : 1;
    for (std::size_t k = 0; k < count; ++k) {
      if (!is_ready(actions[i + k])) return false;
    }
    for (std::size_t k = 0; k < count; ++k) written_[r].push_back(actions[i + k]);
    for (std::size_t k = 0; k < count; ++k) finish(r, actions[i + k]);
    i += count;
    return true;
  }

  bool is_ready(const Action& a) const {
    const int from = a.op == Op::kForward         ? neighbors_.predecessor[a.stage]
                     : gives_input_gradient(a.op) ? neighbors_.successor[a.stage]
                                                  : -1;
    return from < 0 || done_[a.op == Op::kForward ? kActivation : kGradient][slot(from, a.microbatch)];
  }

  void finish(std::size_t r, const Action& a) {
    const bool forward = a.op == Op::kForward;
    if (!forward && !gives_input_gradient(a.op)) return;
    done_[forward ? kActivation : kGradient][slot(a.stage, a.microbatch)] = true;
    const int to = forward ? neighbors_.successor[a.stage] : neighbors_.predecessor[a.stage];
    if (to < 0 || schedule_.stages[to].rank == static_cast<int>(r)) return;
    const auto message = [&a](Op op, int stage) {
      return Action{.op = op, .stage = stage, .microbatch = a.microbatch};
    };
    written_[r].push_back(message(forward ? Op::kSendActivation : Op::kSendGradient, a.stage));
    written_[schedule_.stages[to].rank].push_back(message(forward ? Op::kRecvActivation : Op::kRecvGradient, to));
  }

  std::size_t slot(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(schedule_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }

  const Schedule& schedule_;
  StageNeighbors neighbors_;
  std::vector<std::size_t> cursor_;
  std::array<std::vector<bool>, 2> done_;  // [Made][slot]
  std::vector<std::vector<Action>> written_;
};

/// Puts each receive as late as may be: right ahead of the action (or pair) that needs it. Where a rank exchanges with
/// another, the lower of the two receives before it sends and the higher sends first.
class ReceiveDeferrer {
 public:
  ReceiveDeferrer(const Schedule& schedule, const StageNeighbors& neighbors)
      : schedule_(schedule), neighbors_(neighbors) {}

  std::vector<Action> defer(const std::vector<Action>& actions) {
    std::vector<Action> result;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (is_recv(actions[i].op)) {
        waiting_.push_back(actions[i]);
        continue;
      }
      const std::size_t last = actions[i].overlaps_next ? i + 1 : i;
      for (const Action& receive : waiting_) {
        const auto holds = [&](const Action& action) { return may_not_pass(receive, action); };
        if (std::any_of(actions.begin() + static_cast<std::ptrdiff_t>(i),
                        actions.begin() + static_cast<std::ptrdiff_t>(last) + 1, holds)) {
          result.push_back(receive);
        }
      }
      std::erase_if(waiting_, [&result](const Action& receive) {
        return std::find(result.begin(), result.end(), receive) != result.end();
      });
      result.insert(result.end(), actions.begin() + static_cast<std::ptrdiff_t>(i),
                    actions.begin() + static_cast<std::ptrdiff_t>(last) + 1);
      i = last;
    }
    return result;
  }

 private:
  int peer(const Action& message) const {
    const bool to_later_stage = message.op == Op::kSendActivation || message.op == Op::kRecvGradient;
    const int stage = to_later_stage ? neighbors_.successor[message.stage] : neighbors_.predecessor[message.stage];
    return schedule_.stages[stage].rank;
  }

  bool may_not_pass(const Action& receive, const Action& action) const {
    if (is_send(action.op))
      return peer(action) == peer(receive) && schedule_.stages[receive.stage].rank < peer(receive);
    const bool takes = receive.op == Op::kRecvActivation ? action.op == Op::kForward : gives_input_gradient(action.op);
    return takes && action.stage == receive.stage && action.microbatch == receive.microbatch;
  }

  const Schedule& schedule_;
  const StageNeighbors& neighbors_;
  std::vector<Action> waiting_;
};

}  // namespace

Schedule lower_as_torch(const Schedule& schedule, const TorchLowering& options) {
  Schedule result = schedule;
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    std::vector<Action>& actions = result.ranks[r];
    const auto foreign = std::ranges::find_if(actions, [](const Action& a) { return a.op > Op::kWeightGrad; });
    if (foreign != actions.end()) {
      throw ScheduleError(
          fmt::format("rank {}: {} is no compute action of PyTorch's: lower the compute order", r, to_text(*foreign)));
    }
    actions = with_gathering(actions, static_cast<std::size_t>(options.unsharded_stages));
    actions = with_reductions(actions, result.microbatches, result.stages.size());
  }
  result.ranks = MessageWriter(result).write();
  if (options.deferred_receives) {
    const StageNeighbors neighbors = stage_neighbors(result);
    for (std::vector<Action>& actions : result.ranks) actions = ReceiveDeferrer(result, neighbors).defer(actions);
  }
  return result;
}

}}  // namespace plumb::schedules
