#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"
#include "schedules/generators/travelling_weights.h"

namespace plumb { inline namespace schedules {
namespace {

/// The steps of all ranks: each runs the forwards of one micro-batch through all parts, then its backwards, then the
/// next. A group of ranks is one step behind the group before it.
struct GroupedSteps {
  int ranks = 1;
  int microbatches = 1;
  int group_ranks = 1;

  int groups() const { return ranks / group_ranks; }
  int rounds() const { return (microbatches + ranks - 1) / ranks; }
  int count() const { return 2 * ranks * rounds(); }
  int group_of(int rank) const { return rank / group_ranks; }
  bool is_forward(int step) const { return step % (2 * ranks) < ranks; }
  int part(int step) const {
    const int within = step % (2 * ranks);
    return std::min(within, 2 * ranks - 1 - within);
  }
  int microbatch(int step, int rank) const { return step / (2 * ranks) * ranks + rank; }
  bool computes(int step, int rank) const { return microbatch(step, rank) < microbatches; }

  /// Neighbouring parts belong to neighbouring groups.
  int owner(int part) const { return part % groups() * group_ranks + part / groups(); }
  /// The rank that shares the part with its group: the owner, or the one that stages it for its group.
  int root(int group, int part) const { return group * group_ranks + part / groups(); }

  /// True if the rank has the step's part at that step.
  bool holds(int step, int rank) const {
    if (step < 0 || step >= count()) return false;
    const int group = group_of(rank);
    return computes(step, rank) || (rank == root(group, part(step)) && computes(step, group * group_ranks));
  }
  /// True if the rank has the same part at two steps that follow each other.
  bool keeps(int step, int rank) const {
    return step >= 0 && step + 1 < count() && part(step) == part(step + 1) && holds(step, rank) &&
           holds(step + 1, rank);
  }
  /// True if the step's part must come to the rank, or be shared by it.
  bool fetches(int step, int rank) const { return holds(step, rank) && !keeps(step - 1, rank); }
};

/// Lists the turns of one rank. At turn t its group is at step t - group.
class GroupRank {
 public:
  GroupRank(const GroupedSteps& steps, int rank) : steps_(steps), rank_(rank), group_(steps.group_of(rank)) {}

  std::vector<Action> actions() {
    for (int turn = -1; turn < steps_.count() + steps_.groups() - 1; ++turn) {
      const int step = turn - group_;
      serve_other_groups(turn);
      fetch(step + 1);
      if (step >= 0 && step < steps_.count()) {
        run(step);
        if (!steps_.is_forward(step)) sum_up(step);
        drop(step);
      }
      if (turn >= 0) take_sums(turn);
    }
    int own = 0;
    while (steps_.owner(own) != rank_) ++own;
    actions_.push_back({.op = Op::kOptimizerStep, .stage = stage(own)});
    return std::move(actions_);
  }

 private:
  int stage(int part) const { return travelling_stage(steps_.ranks, rank_, part); }

  void message(Op op, int part, int other) { actions_.push_back(weight_message(op, steps_.ranks, part, rank_, other)); }

  /// Sends the rank's own part to the groups whose next step needs it.
  void serve_other_groups(int turn) {
    for (int group = 0; group < steps_.groups(); ++group) {
      const int step = turn - group + 1;
      if (group == group_ || step < 0 || step >= steps_.count()) continue;
      const int part = steps_.part(step), root = steps_.root(group, part);
      if (steps_.owner(part) == rank_ && steps_.fetches(step, root)) message(Op::kSendWeights, part, root);
    }
  }

  /// Gets the part of a step, and shares it with the group.
  void fetch(int step) {
    if (!steps_.fetches(step, rank_)) return;
    const int part = steps_.part(step), root = steps_.root(group_, part);
    if (rank_ != root) return message(Op::kRecvWeights, part, root);
    if (steps_.owner(part) != rank_) message(Op::kRecvWeights, part, steps_.owner(part));
    for_each_other([&](int other) {
      if (steps_.fetches(step, other)) message(Op::kSendWeights, part, other);
    });
  }

  void run(int step) {
    if (!steps_.computes(step, rank_)) return;
    const Op op = steps_.is_forward(step) ? Op::kForward : Op::kBackward;
    actions_.push_back(compute_action(op, stage(steps_.part(step)), steps_.microbatch(step, rank_)));
  }

  /// Sums the gradients of a step's part over the group, at its root, which sends the sum to the owner.
  void sum_up(int step) {
    if (!steps_.holds(step, rank_)) return;
    const int part = steps_.part(step), root = steps_.root(group_, part);
    if (rank_ != root) return message(Op::kSendWeightGrad, part, root);
    for_each_other([&](int other) {
      if (steps_.computes(step, other)) message(Op::kRecvWeightGrad, part, other);
    });
    if (steps_.owner(part) != rank_) message(Op::kSendWeightGrad, part, steps_.owner(part));
  }

  /// Takes the sums of the other groups of the rank's own part.
  void take_sums(int turn) {
    for (int group = 0; group < steps_.groups(); ++group) {
      const int step = turn - group;
      if (group == group_ || step < 0 || step >= steps_.count() || steps_.is_forward(step)) continue;
      const int part = steps_.part(step), root = steps_.root(group, part);
      if (steps_.owner(part) == rank_ && steps_.holds(step, root)) message(Op::kRecvWeightGrad, part, root);
    }
  }

  void drop(int step) {
    const int part = steps_.part(step);
    if (!steps_.holds(step, rank_) || steps_.keeps(step, rank_) || steps_.owner(part) == rank_) return;
    actions_.push_back({.op = Op::kReshard, .stage = stage(part)});
  }

  template <typename Visit>
  void for_each_other(Visit visit) const {
    for (int other = group_ * steps_.group_ranks; other < (group_ + 1) * steps_.group_ranks; ++other) {
      if (other != rank_) visit(other);
    }
  }

  const GroupedSteps& steps_;
  int rank_;
  int group_;
  std::vector<Action> actions_;
};

}  // namespace

Schedule tawpipe_schedule(const ScheduleParameters& parameters) {
  const GroupedSteps steps{.ranks = parameters.ranks,
                           .microbatches = parameters.microbatches,
                           .group_ranks = parameters.node_ranks == 0 ? parameters.ranks : parameters.node_ranks};
  if (steps.group_ranks < 1 || steps.ranks % steps.group_ranks != 0) {
    throw ScheduleError(fmt::format("tawpipe has nodes of {} ranks, which do not divide {}: give a divisor",
                                    steps.group_ranks, steps.ranks));
  }
  Schedule schedule = travelling_schedule("tawpipe", parameters);
  for (int rank = 0; rank < steps.ranks; ++rank) schedule.ranks.push_back(GroupRank(steps, rank).actions());
  return schedule;
}

}}  // namespace plumb::schedules
