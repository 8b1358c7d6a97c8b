#include "schedules/synthesis/chain_scheduler.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "schedules/generators/phases.h"

namespace plumb {
namespace {

constexpr SimTime kUnknown = SimTime::max();

/// A rank as the clock runs: how far it has come in each kind of action, and when it may decide again.
struct RankState {
  int forwards = 0;
  int input_grads = 0;
  int weight_grads = 0;
  SimTime free{0};
  std::vector<SimTime> activation_at;  ///< [micro-batch] when its forward may start
  std::vector<SimTime> gradient_at;    ///< [micro-batch] when its input gradient may start
  std::vector<Action> actions;
};

class ListScheduler {
 public:
  ListScheduler(const ChainCosts& costs, const std::vector<ChainRule>& rules)
      : costs_(costs), rules_(rules), ranks_(costs.forward.size()) {
    const auto microbatches = static_cast<std::size_t>(costs.microbatches);
    for (RankState& rank : ranks_) {
      rank.activation_at.assign(microbatches, kUnknown);
      rank.gradient_at.assign(microbatches, kUnknown);
      rank.actions.reserve(3 * microbatches);
    }
    ranks_.front().activation_at.assign(microbatches, SimTime{0});
  }

  std::vector<std::vector<Action>> run() {
    wake(0, SimTime{0});
    while (!decisions_.empty()) {
      const auto [time, r] = decisions_.top();
      decisions_.pop();
      if (ranks_[r].free <= time) decide(r, time);
    }
    std::vector<std::vector<Action>> orders;
    for (RankState& rank : ranks_) orders.push_back(std::move(rank.actions));
    return orders;
  }

 private:
  std::int64_t held_bytes(const RankState& rank) const {
    const std::int64_t kept_for_weight_grad = costs_.activation_bytes - costs_.released_at_input_grad_bytes;
    return (rank.forwards - rank.input_grads) * costs_.activation_bytes +
           (rank.input_grads - rank.weight_grads) * kept_for_weight_grad;
  }

  void decide(int r, SimTime now) {
    const RankState& rank = ranks_[r];
    const bool may_forward =
        rank.forwards < costs_.microbatches && rank.forwards - rank.input_grads < rules_[r].max_in_flight;
    const SimTime forward_at = may_forward ? rank.activation_at[rank.forwards] : kUnknown;
    const SimTime input_grad_at = rank.input_grads < rank.forwards ? rank.gradient_at[rank.input_grads] : kUnknown;
    const bool has_room = held_bytes(rank) + costs_.activation_bytes <= costs_.max_bytes[r];
    const bool may_weight_grad = rank.weight_grads < rank.input_grads;

    if (rules_[r].forward_first && forward_at <= now && (has_room || may_weight_grad)) {
      return act(r, has_room ? Op::kForward : Op::kWeightGrad, now);
    }
    if (input_grad_at <= now) return act(r, Op::kInputGrad, now);
    if (forward_at <= now && has_room) return act(r, Op::kForward, now);
    if (!may_weight_grad) return;
    const SimTime next = std::min(has_room ? forward_at : kUnknown, input_grad_at);
    const bool makes_way = forward_at <= now;
    const double fits = (1 - rules_[r].patience) * static_cast<double>(costs_.weight_grad[r].count());
    if (makes_way || next == kUnknown || static_cast<double>((next - now).count()) >= fits) {
      act(r, Op::kWeightGrad, now);
    }
  }

  void act(int r, Op op, SimTime now) {
    RankState& rank = ranks_[r];
    const auto [duration, microbatch] = [&]() -> std::tuple<SimTime, int> {
      if (op == Op::kForward) return {costs_.forward[r], rank.forwards++};
      if (op == Op::kInputGrad) return {costs_.input_grad[r], rank.input_grads++};
      return {costs_.weight_grad[r], rank.weight_grads++};
    }();
    rank.actions.push_back(compute_action(op, r, microbatch));
    rank.free = now + duration;
    wake(r, rank.free);
    const int last = static_cast<int>(ranks_.size()) - 1;
    if (op == Op::kForward && r < last) deliver(r + 1, ranks_[r + 1].activation_at[microbatch], rank.free + costs_.hop);
    if (op == Op::kForward && r == last) rank.gradient_at[microbatch] = rank.free;
    if (op == Op::kInputGrad && r > 0) deliver(r - 1, ranks_[r - 1].gradient_at[microbatch], rank.free + costs_.hop);
  }

  void deliver(int r, SimTime& slot, SimTime time) {
    slot = time;
    wake(r, time);
  }

  void wake(int r, SimTime time) { decisions_.emplace(time, r); }

  const ChainCosts& costs_;
  const std::vector<ChainRule>& rules_;
  std::vector<RankState> ranks_;
  std::priority_queue<std::tuple<SimTime, int>, std::vector<std::tuple<SimTime, int>>, std::greater<>> decisions_;
};

}  // namespace

std::vector<std::vector<Action>> schedule_chain(const ChainCosts& costs, const std::vector<ChainRule>& rules) {
  return ListScheduler(costs, rules).run();
}

}  // namespace plumb
