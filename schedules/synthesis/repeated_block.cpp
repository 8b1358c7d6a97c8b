#include "schedules/synthesis/repeated_block.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace plumb { inline namespace schedules {
namespace {

int slots_of(Op op) {
  return op == Op::kBackward ? 2 : 1;
}

/// One rank's actions, slot by slot. A slot without a forward or a backward runs the oldest weight gradient left to
/// run.
class RankSlots {
 public:
  explicit RankSlots(int slots)
      : taken_by_(static_cast<std::size_t>(slots), kFree), states_(static_cast<std::size_t>(slots)) {}

  int size() const { return static_cast<int>(taken_by_.size()); }

  void put(int slot, const Action& action) {
    assert(is_free(slot, slots_of(action.op)));
    actions_.push_back(action);
    take(slot, static_cast<int>(actions_.size()) - 1);
  }

  /// Returns the forward or backward that starts in a slot, or nothing.
  const Action* starting(int slot) const { return taken_by_[slot] >= 0 ? &actions_[taken_by_[slot]] : nullptr; }

  /// Moves the action that starts in `slot` to the first slot from `ready` on that has room for it; returns that slot.
  /// A forward also needs memory: neither it nor a weight gradient that makes way for it may lead beyond the limit.
  int move_forward(int slot, int ready, int rank_limit) {
    const int moved = taken_by_[slot];
    const Op op = actions_[moved].op;
    const int held_by_others = op == Op::kForward ? rank_limit - 1 : rank_limit;
    int to = ready;
    if (op == Op::kForward) {
      for (to = slot; to > ready && states_[to - 1].held <= held_by_others;) --to;
    }
    release(slot);
    while (to < slot && !(is_free(to, slots_of(op)) && can_do_without(to, slot, held_by_others))) ++to;
    take(to, moved);
    if (to != slot) count(to, slot);
    return to;
  }

  /// Counts the activations that the rank holds from slot `first` on, to the first slot behind `last` where nothing is
  /// new.
  void count(int first, int last) {
    for (int t = first; t < size(); ++t) {
      const State now = next(t > 0 ? states_[t - 1] : State{}, t);
      if (t > last && now == states_[t]) return;
      states_[t] = now;
    }
  }

  std::vector<Action> order() const {
    std::vector<Action> listed;
    std::vector<Action> weight_grads;
    std::size_t run = 0;
    for (int t = 0; t < size(); ++t) {
      if (const Action* const action = starting(t)) {
        listed.push_back(*action);
        if (action->op != Op::kInputGrad) continue;
        weight_grads.push_back(*action);
        weight_grads.back().op = Op::kWeightGrad;
      } else if (taken_by_[t] == kFree && run < weight_grads.size()) {
        listed.push_back(weight_grads[run++]);
      }
    }
    listed.insert(listed.end(), weight_grads.begin() + static_cast<std::ptrdiff_t>(run), weight_grads.end());
    return listed;
  }

 private:
  static constexpr int kFree = -1;
  static constexpr int kSecondSlot = -2;

  struct State {
    int held = 0;     ///< activations
    int pending = 0;  ///< weight gradients whose input gradient has run

    friend bool operator==(const State&, const State&) = default;
  };

  State next(State state, int slot) const {
    if (taken_by_[slot] == kSecondSlot) return state;
    if (taken_by_[slot] == kFree) {
      if (state.pending > 0) --state.pending, --state.held;
      return state;
    }
    const Op op = actions_[taken_by_[slot]].op;
    if (op == Op::kForward) ++state.held;
    if (op == Op::kBackward) --state.held;
    if (op == Op::kInputGrad) ++state.pending;
    return state;
  }

  bool runs_weight_grad(int slot) const {
    return taken_by_[slot] == kFree && slot > 0 && states_[slot - 1].pending > 0;
  }

  /// True if a weight gradient that runs in a slot can wait for the first slot that runs nothing, or for `last`: until
  /// then its activation is held besides the others.
  bool can_do_without(int slot, int last, int limit) const {
    if (!runs_weight_grad(slot)) return true;
    for (int t = slot; t < last && (taken_by_[t] != kFree || runs_weight_grad(t)); ++t) {
      if (states_[t].held + 1 > limit) return false;
    }
    return true;
  }

  bool is_free(int slot, int slots) const {
    return std::all_of(&taken_by_[slot], &taken_by_[slot] + slots, [](int by) { return by == kFree; });
  }
  void take(int slot, int number) {
    taken_by_[slot] = number;
    if (slots_of(actions_[number].op) == 2) taken_by_[slot + 1] = kSecondSlot;
  }
  void release(int slot) { std::fill_n(taken_by_.begin() + slot, slots_of(actions_[taken_by_[slot]].op), kFree); }

  std::vector<Action> actions_;  ///< forwards and backwards
  std::vector<int> taken_by_;    ///< [slot] index in actions_, kFree or kSecondSlot
  std::vector<State> states_;    ///< [slot] state at its end
};

class Repetition {
 public:
  Repetition(const Schedule& frame, int ranks, const BuildingBlock& block)
      : block_(block),
        schedule_(frame),
        neighbors_(stage_neighbors(frame)),
        backward_(block.whole_backwards ? Op::kBackward : Op::kInputGrad),
        forward_starts_(frame.stages.size()),
        backward_starts_(frame.stages.size()) {
    const int last = *std::ranges::max_element(block.backward_slot) + block.period * (frame.microbatches - 1);
    ranks_.assign(static_cast<std::size_t>(ranks), RankSlots(last + slots_of(backward_)));
    for (int s = 0; s < static_cast<int>(frame.stages.size()); ++s) {
      for (int m = 0; m < frame.microbatches; ++m) {
        put(block.forward_slot[s] + block.period * m, {.op = Op::kForward, .stage = s, .microbatch = m});
        put(block.backward_slot[s] + block.period * m, {.op = backward_, .stage = s, .microbatch = m});
      }
    }
    for (RankSlots& rank : ranks_) rank.count(0, rank.size());
  }

  void move_forward() {
    const int steady_begin = block_.backward_slot[0];
    const int steady_end = block_.forward_slot[0] + block_.period * (schedule_.microbatches - 1);
    for (int t = 0; t < ranks_.front().size(); ++t) {
      if (!block_.moves_steady_state && t >= steady_begin && t <= steady_end) continue;
      for (RankSlots& rank : ranks_) {
        const Action* const action = rank.starting(t);
        if (action != nullptr) start(*action) = rank.move_forward(t, ready(*action), block_.rank_limit);
      }
    }
  }

  Schedule order() && {
    schedule_.ranks.clear();
    for (const RankSlots& rank : ranks_) schedule_.ranks.push_back(rank.order());
    return std::move(schedule_);
  }

 private:
  std::vector<int>& starts(const Action& action) {
    return (action.op == Op::kForward ? forward_starts_ : backward_starts_)[action.stage];
  }
  int& start(const Action& action) { return starts(action)[action.microbatch]; }

  void put(int slot, const Action& action) {
    ranks_[schedule_.stages[action.stage].rank].put(slot, action);
    starts(action).push_back(slot);
  }

  /// Returns the first slot behind the action's inputs and its stage's micro-batch before it.
  int ready(const Action& action) {
    const auto end_of = [this](Op op, int stage, int microbatch) {
      return start({.op = op, .stage = stage, .microbatch = microbatch}) + slots_of(op);
    };
    const bool forward = action.op == Op::kForward;
    int slot = forward ? 0 : end_of(Op::kForward, action.stage, action.microbatch);
    if (action.microbatch > 0) slot = std::max(slot, end_of(action.op, action.stage, action.microbatch - 1));
    const int from = (forward ? neighbors_.predecessor : neighbors_.successor)[action.stage];
    return from < 0 ? slot : std::max(slot, end_of(action.op, from, action.microbatch));
  }

  const BuildingBlock& block_;
  Schedule schedule_;
  StageNeighbors neighbors_;
  Op backward_;
  std::vector<RankSlots> ranks_;
  std::vector<std::vector<int>> forward_starts_;   ///< [stage][micro-batch]
  std::vector<std::vector<int>> backward_starts_;  ///< [stage][micro-batch]
};

}  // namespace

Schedule repeat_block(const Schedule& frame, int ranks, const BuildingBlock& block) {
  Repetition repetition(frame, ranks, block);
  repetition.move_forward();
  return std::move(repetition).order();
}

}}  // namespace plumb::schedules
