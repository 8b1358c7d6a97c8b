#include "schedules/synthesis/list_scheduler.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/time.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr std::int64_t kNotYet = std::numeric_limits<std::int64_t>::max();

/// One direction of a stage: its micro-batches run in order, each once its input is there.
struct Line {
  std::vector<std::int64_t> ready_at;  ///< [index in the lane]
  int next = 0;                        ///< index of the next micro-batch

  bool is_done() const { return next == static_cast<int>(ready_at.size()); }
};

struct StageState {
  Line forward;
  Line backward;
};

struct RankState {
  std::vector<int> stages;
  std::int64_t free_at = 0;
  std::vector<std::pair<int, int>> weight_grads;  ///< (stage, index) of every I that has run
  std::size_t weight_grads_run = 0;
  std::int64_t held_bytes = 0;

  bool has_weight_grad() const { return weight_grads_run < weight_grads.size(); }
};

struct ReadyAction {
  bool forward = true;
  int stage = -1;
  int urgency = 0;
};

class ListScheduler {
 public:
  ListScheduler(const Schedule& frame, int ranks, const OrderCosts& costs, const ListRules& rules)
      : schedule_(frame),
        costs_(costs),
        rules_(rules),
        neighbors_(stage_neighbors(frame)),
        stages_(frame.stages.size()),
        ranks_(static_cast<std::size_t>(ranks)) {
    schedule_.ranks.assign(static_cast<std::size_t>(ranks), {});
    int lanes = 1;
    for (const StagePlace& place : frame.stages) lanes = std::max(lanes, place.lane + 1);
    for (int lane = 0; lane <= lanes; ++lane) first_of_lane_.push_back(frame.microbatches * lane / lanes);
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      const int lane = frame.stages[s].lane;
      const auto count = static_cast<std::size_t>(first_of_lane_[lane + 1] - first_of_lane_[lane]);
      ranks_[frame.stages[s].rank].stages.push_back(s);
      stages_[s].forward.ready_at.assign(count, neighbors_.predecessor[s] < 0 ? 0 : kNotYet);
      stages_[s].backward.ready_at.assign(count, kNotYet);
    }
  }

  Schedule run() {
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) decisions_.emplace(0, r);
    while (!decisions_.empty()) {
      const auto [now, r] = decisions_.top();
      decisions_.pop();
      if (ranks_[r].free_at <= now) decide(r, now);
    }
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      if (stages_[s].backward.is_done()) continue;
      throw ScheduleError(fmt::format("the rules of {} deadlock at stage {}: raise its limits", schedule_.name, s));
    }
    return std::move(schedule_);
  }

 private:
  Line& line(const ReadyAction& c) { return c.forward ? stages_[c.stage].forward : stages_[c.stage].backward; }

  /// Finds the actions that the rank has left to run of its stages, most urgent first.
  void find_candidates(const RankState& rank) {
    candidates_.clear();
    for (const int s : rank.stages) {
      const auto& [forward, backward] = stages_[s];
      const bool may_forward = forward.next - backward.next < rules_.max_in_flight[s];
      if (may_forward && !forward.is_done()) {
        candidates_.push_back({true, s, rules_.forward_urgency[s] + rules_.period * forward.next});
      }
      if (backward.next < forward.next) {
        candidates_.push_back({false, s, rules_.backward_urgency[s] + rules_.period * backward.next});
      }
    }
    std::ranges::sort(candidates_, {}, [](const ReadyAction& c) { return std::tuple(c.urgency, c.forward, -c.stage); });
  }

  bool has_room(int r) const {
    return rules_.whole_backwards || ranks_[r].held_bytes + rules_.activation_bytes <= rules_.max_bytes[r];
  }

  void decide(int r, std::int64_t now) {
    const RankState& rank = ranks_[r];
    find_candidates(rank);
    std::int64_t next = kNotYet;
    for (const ReadyAction& c : candidates_) {
      const std::int64_t ready_at = line(c).ready_at[line(c).next];
      const bool fits = !c.forward || has_room(r);
      if (ready_at <= now && fits) return run_action(r, c, now);
      if (ready_at <= now && rank.has_weight_grad()) return run_weight_grad(r, now);
      if (fits) next = std::min(next, ready_at);
    }
    if (!rank.has_weight_grad()) return;
    const std::int64_t duration = costs_.weight_grad[rank.weight_grads[rank.weight_grads_run].first];
    const double shortest_gap = (1 - rules_.patience[r]) * static_cast<double>(duration);
    if (next == kNotYet || static_cast<double>(next - now) >= shortest_gap) run_weight_grad(r, now);
  }

  void run_action(int r, const ReadyAction& c, std::int64_t now) {
    const int s = c.stage;
    const int index = line(c).next++;
    const bool whole = rules_.whole_backwards;
    const std::int64_t backward = costs_.input_grad[s] + (whole ? costs_.weight_grad[s] : 0);
    const std::int64_t end = now + (c.forward ? costs_.forward[s] : backward);
    list(r, c.forward ? Op::kForward : whole ? Op::kBackward : Op::kInputGrad, s, index, end);
    if (c.forward) {
      ranks_[r].held_bytes += rules_.activation_bytes;
      const int successor = neighbors_.successor[s];
      if (successor < 0) {
        stages_[s].backward.ready_at[index] = end;
      } else {
        deliver(r, successor, stages_[successor].forward.ready_at[index], end);
      }
    } else {
      if (!whole) {
        ranks_[r].weight_grads.emplace_back(s, index);
        ranks_[r].held_bytes -= rules_.released_at_input_grad_bytes;
      }
      const int predecessor = neighbors_.predecessor[s];
      if (predecessor >= 0) deliver(r, predecessor, stages_[predecessor].backward.ready_at[index], end);
    }
  }

  void run_weight_grad(int r, std::int64_t now) {
    RankState& rank = ranks_[r];
    const auto [stage, index] = rank.weight_grads[rank.weight_grads_run++];
    list(r, Op::kWeightGrad, stage, index, now + costs_.weight_grad[stage]);
    rank.held_bytes -= rules_.activation_bytes - rules_.released_at_input_grad_bytes;
  }

  void list(int r, Op op, int stage, int index, std::int64_t end) {
    if (end > kLatestMoment.count()) refuse_late_moment(schedule_.name);
    const int microbatch = first_of_lane_[schedule_.stages[stage].lane] + index;
    schedule_.ranks[r].push_back({.op = op, .stage = stage, .microbatch = microbatch});
    ranks_[r].free_at = end;
    decisions_.emplace(end, r);
  }

  void deliver(int from_rank, int stage, std::int64_t& ready_at, std::int64_t sent) {
    const int to_rank = schedule_.stages[stage].rank;
    ready_at = sent + (to_rank == from_rank ? 0 : costs_.hop);
    if (to_rank != from_rank) decisions_.emplace(ready_at, to_rank);
  }

  using Decision = std::pair<std::int64_t, int>;  ///< (time, rank)

  Schedule schedule_;
  const OrderCosts& costs_;
  const ListRules& rules_;
  StageNeighbors neighbors_;
  std::vector<int> first_of_lane_;
  std::vector<StageState> stages_;
  std::vector<RankState> ranks_;
  std::vector<ReadyAction> candidates_;
  std::priority_queue<Decision, std::vector<Decision>, std::greater<>> decisions_;
};

}  // namespace

Schedule list_schedule(const Schedule& frame, int ranks, const OrderCosts& costs, const ListRules& rules) {
  return ListScheduler(frame, ranks, costs, rules).run();
}

}}  // namespace plumb::schedules
