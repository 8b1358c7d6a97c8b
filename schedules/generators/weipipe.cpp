#include <utility>
#include <vector>

#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"
#include "schedules/generators/travelling_weights.h"

namespace plumb { inline namespace schedules {
namespace {

/// A flow of weights brings a model part to a rank at each turn, for a micro-batch. Numbers below 0 are turns on the way
/// to micro-batch 0.
struct FlowPlace {
  int part = 0;
  int microbatch = 0;
};

/// A flow of weights around the ring: at each turn all weights of it move one rank on.
struct WeightFlow {
  bool backward = false;
  int ranks = 1;

  /// The first turn, at which every rank has one part.
  int first_turn() const { return backward ? ranks : 0; }

  FlowPlace at(int turn, int rank) const {
    const int along = ((turn - rank) % ranks + ranks) % ranks;
    if (!backward) return {.part = along, .microbatch = turn - along};
    const int part = ranks - 1 - along;
    return {.part = part, .microbatch = turn + part + 1 - 2 * ranks};
  }
};

/// The rank that owns a part: the backward flow begins there.
int owner_of(int part, int ranks) {
  return (part + 1) % ranks;
}

/// Returns the last number that the gradient of a part comes to: that of the last micro-batch or, behind it, of the
/// owner.
int last_stop(int part, const ScheduleParameters& parameters) {
  int stop = parameters.microbatches - 1;
  while (stop % parameters.ranks != owner_of(part, parameters.ranks)) ++stop;
  return stop;
}

/// Lists the turns of one rank.
class RingRank {
 public:
  RingRank(const ScheduleParameters& parameters, int rank)
      : parameters_(parameters),
        rank_(rank),
        forward_{.ranks = parameters.ranks},
        backward_{.backward = true, .ranks = parameters.ranks},
        at_hand_(static_cast<std::size_t>(parameters.ranks), 0) {}

  std::vector<Action> actions() {
    const int p = parameters_.ranks;
    exchange_first_weights();
    for (int turn = 0; turn < 3 * p + parameters_.microbatches; ++turn) {
      hand_on_weights(backward_, turn);
      compute(Op::kBackward, backward_.at(turn, rank_));
      hand_on_gradient(turn);
      finish(backward_, turn);
      hand_on_weights(forward_, turn);
      compute(Op::kForward, forward_.at(turn, rank_));
      finish(forward_, turn);
    }
    actions_.push_back({.op = Op::kOptimizerStep, .stage = travelling_stage(p, rank_, (rank_ + p - 1) % p)});
    return std::move(actions_);
  }

 private:
  /// The forward flow begins elsewhere than the backward flow: each rank exchanges its part with the rank that begins
  /// with it.
  void exchange_first_weights() {
    const int p = parameters_.ranks;
    const int other = (p + 1 - rank_) % p;
    if (other == rank_) return;
    list_message(Op::kSendWeights, (rank_ + p - 1) % p, other);
    list_message(Op::kRecvWeights, forward_.at(0, rank_).part, other);
    ++at_hand_[forward_.at(0, rank_).part];
  }

  /// Sends the part of this turn on and receives that of the next, while the rank computes with the first.
  void hand_on_weights(const WeightFlow& flow, int turn) {
    const int last = parameters_.microbatches - 1;
    const FlowPlace now = flow.at(turn, rank_), next = flow.at(turn + 1, rank_);
    if (turn >= flow.first_turn() && now.microbatch < last) list_message(Op::kSendWeights, now.part, rank_ + 1);
    if (turn < flow.first_turn() || next.microbatch > last || parameters_.ranks == 1) return;
    list_message(Op::kRecvWeights, next.part, rank_ - 1);
    ++at_hand_[next.part];
  }

  /// Sends the sum of the gradients of this turn's part on and receives that of the next turn's.
  void hand_on_gradient(int turn) {
    const FlowPlace now = backward_.at(turn, rank_), next = backward_.at(turn + 1, rank_);
    if (now.microbatch >= 0 && now.microbatch < last_stop(now.part, parameters_))
      list_message(Op::kSendWeightGrad, now.part, rank_ + 1);
    if (next.microbatch >= 1 && next.microbatch <= last_stop(next.part, parameters_))
      list_message(Op::kRecvWeightGrad, next.part, rank_ - 1);
  }

  /// Drops the part of this turn if it has come from another rank, unless the other flow has brought it as well and it
  /// is yet to be used.
  void finish(const WeightFlow& flow, int turn) {
    const FlowPlace now = flow.at(turn, rank_);
    const bool is_own = owner_of(now.part, parameters_.ranks) == rank_ && turn == flow.first_turn();
    const bool is_under_way = turn >= flow.first_turn() && now.microbatch < parameters_.microbatches;
    if (!is_under_way || is_own || at_hand_[now.part] == 0 || --at_hand_[now.part] > 0) return;
    actions_.push_back({.op = Op::kReshard, .stage = travelling_stage(parameters_.ranks, rank_, now.part)});
  }

  void compute(Op op, const FlowPlace& now) {
    if (now.microbatch < 0 || now.microbatch >= parameters_.microbatches) return;
    actions_.push_back(compute_action(op, travelling_stage(parameters_.ranks, rank_, now.part), now.microbatch));
  }

  void list_message(Op op, int part, int other_rank) {
    const int p = parameters_.ranks;
    const int other = (other_rank + p) % p;
    if (other == rank_) return;
    actions_.push_back(weight_message(op, p, part, rank_, other));
  }

  const ScheduleParameters& parameters_;
  int rank_;
  WeightFlow forward_;
  WeightFlow backward_;
  std::vector<int> at_hand_;  ///< [part] times that it has come and is yet to be used
  std::vector<Action> actions_;
};

}  // namespace

Schedule weipipe_schedule(const ScheduleParameters& parameters) {
  Schedule schedule = travelling_schedule("weipipe", parameters);
  for (int rank = 0; rank < parameters.ranks; ++rank) schedule.ranks.push_back(RingRank(parameters, rank).actions());
  return schedule;
}

}}  // namespace plumb::schedules
