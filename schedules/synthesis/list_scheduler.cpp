#include "schedules/synthesis/list_scheduler.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/time.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr double kPatienceRounding = 1e-9;
constexpr std::int64_t kNotYet = std::numeric_limits<std::int64_t>::max();

/// One direction of a stage: the slices of its micro-batches run in order, each once its input is there. Of each
/// micro-batch they ascend forth and descend back.
struct Line {
  std::vector<std::int64_t> ready_at;  ///< [index in the lane] of slices, in the order in which they come
  int next = 0;                        ///< index of the next one

  bool is_done() const { return next == static_cast<int>(ready_at.size()); }
};

struct StageState {
  Line forward;
  Line backward;
};

struct RankState {
  std::vector<int> stages;
  std::int64_t free_at = 0;
  std::int64_t work = 0;                          ///< durations of all of its actions
  std::int64_t waited = 0;                        ///< time that counts and in which it runs nothing
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
  ListScheduler(std::int64_t most_time, const OrderQuestion& question, const ListRules& rules)
      : most_time_(most_time),
        question_(question),
        schedule_(question.frame),
        costs_(question.costs),
        rules_(rules),
        neighbors_(stage_neighbors(question.frame)),
        stages_(question.frame.stages.size()),
        ranks_(static_cast<std::size_t>(question.ranks)),
        decides_at_(ranks_.size()),
        alike_(ranks_.size()) {
    const Schedule& frame = question.frame;
    schedule_.ranks.assign(ranks_.size(), {});
    int lanes = 1;
    for (const StagePlace& place : frame.stages) lanes = std::max(lanes, place.lane + 1);
    for (int lane = 0; lane <= lanes; ++lane) first_of_lane_.push_back(frame.microbatches * lane / lanes);
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      const int lane = frame.stages[s].lane;
      const auto count = static_cast<std::size_t>(question.slices * (first_of_lane_[lane + 1] - first_of_lane_[lane]));
      RankState& rank = ranks_[frame.stages[s].rank];
      rank.stages.push_back(s);
      rank.work +=
          static_cast<std::int64_t>(count) * (costs_.forward[s] + costs_.input_grad[s] + costs_.weight_grad[s]);
      stages_[s].forward.ready_at.assign(count, neighbors_.predecessor[s] < 0 ? 0 : kNotYet);
      stages_[s].backward.ready_at.assign(count, kNotYet);
    }
  }

  ListedOrder run() {
    for (;;) {
      const int r = first_to_decide();
      if (decides_at_[r] == kNotYet) break;
      decide(r, decides_at_[r]);
      if (ranks_[r].work + ranks_[r].waited >= most_time_) return {.alike = std::move(alike_)};
    }
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      if (!stages_[s].backward.is_done()) return {.is_deadlocked = true, .alike = std::move(alike_)};
    }
    std::int64_t time = 0;
    for (const RankState& rank : ranks_) time = std::max(time, rank.work + rank.waited);
    return {.is_below = true, .schedule = std::move(schedule_), .time = time, .alike = std::move(alike_)};
  }

 private:
  int first_to_decide() const {
    int first = 0;
    std::int64_t earliest = decides_at_[0];
    for (int r = 1; r < static_cast<int>(decides_at_.size()); ++r) {
      const bool earlier = decides_at_[r] < earliest;  // without a branch, which no processor would foresee
      first = earlier ? r : first;
      earliest = earlier ? decides_at_[r] : earliest;
    }
    return first;
  }

  /// Returns the index in the one direction of the slice that has this index in the other.
  int in_other_direction(int index) const {
    const int slice = index % question_.slices;
    return index - slice + question_.slices - 1 - slice;
  }

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
      if (!backward.is_done() && in_other_direction(backward.next) < forward.next) {
        candidates_.push_back({false, s, rules_.backward_urgency[s] + rules_.period * backward.next});
      }
    }
    const auto goes_before = [](const ReadyAction& a, const ReadyAction& b) {
      return std::tuple(a.urgency, a.forward, -a.stage) < std::tuple(b.urgency, b.forward, -b.stage);
    };
    std::ranges::sort(candidates_, goes_before);
  }

  bool has_room(int r, int stage) const {
    const ActivationMemory& memory = question_.memory;
    return memory.max_bytes.empty() || ranks_[r].held_bytes + memory.activation_bytes[stage] <= memory.max_bytes[r];
  }

  bool is_ready(const Line& line, std::int64_t now) const { return !line.is_done() && line.ready_at[line.next] <= now; }

  /// Notes of the rank's one stage how far its rules could differ and list what `decide` is about to list.
  void note_alike(int r, std::int64_t now) {
    const int s = ranks_[r].stages.front();
    const auto& [forward, backward] = stages_[s];
    const int in_flight = forward.next - backward.next;
    const bool gradient_ready = in_flight > 0 && is_ready(backward, now);
    LikeRules& alike = alike_[r];
    if (gradient_ready && is_ready(forward, now)) alike.any_urgency = false;
    const bool backward_settles = gradient_ready && rules_.backward_urgency[s] < rules_.forward_urgency[s];
    if (forward.is_done() || backward_settles) return;
    if (in_flight < rules_.max_in_flight[s]) {
      alike.least_in_flight = std::max(alike.least_in_flight, in_flight + 1);
    } else {
      alike.most_in_flight = rules_.max_in_flight[s];
    }
  }

  /// Says whether a weight gradient fits into the gap, and notes which patience says the same.
  bool fills(int r, std::int64_t gap, std::int64_t duration) {
    const double needed = 1 - static_cast<double>(gap) / static_cast<double>(std::max<std::int64_t>(1, duration));
    const double shortest_gap = (1 - rules_.patience[r]) * static_cast<double>(duration);
    const bool fits = static_cast<double>(gap) >= shortest_gap;
    LikeRules& alike = alike_[r];
    // A patience that is as near as rounding to the one that is needed counts as another.
    if (gap >= duration) {
      // Any patience does.
    } else if (fits) {
      alike.least_patience = std::max(alike.least_patience, needed + kPatienceRounding);
    } else {
      alike.most_patience = std::min(alike.most_patience, needed - kPatienceRounding);
    }
    return fits;
  }

  /// Starts an action, or says when the rank decides again.
  void decide(int r, std::int64_t now) {
    RankState& rank = ranks_[r];
    if (rank.stages.size() == 1) note_alike(r, now);
    find_candidates(rank);
    decides_at_[r] = kNotYet;
    std::int64_t next = kNotYet;
    for (const ReadyAction& c : candidates_) {
      const std::int64_t ready_at = line(c).ready_at[line(c).next];
      const bool fits = !c.forward || has_room(r, c.stage);
      if (ready_at <= now && fits) return run_action(r, c, now);
      if (ready_at <= now && rank.has_weight_grad()) return run_weight_grad(r, now);
      if (fits) next = std::min(next, ready_at);
      if (ready_at > now) decides_at_[r] = std::min(decides_at_[r], ready_at);
    }
    if (!rank.has_weight_grad()) return;
    const std::int64_t duration = costs_.weight_grad[rank.weight_grads[rank.weight_grads_run].first];
    if (next == kNotYet || fills(r, next - now, duration)) run_weight_grad(r, now);
  }

  void run_action(int r, const ReadyAction& c, std::int64_t now) {
    const int s = c.stage;
    const int index = line(c).next++;
    const bool whole = question_.whole_backwards;
    const std::int64_t backward = costs_.input_grad[s] + (whole ? costs_.weight_grad[s] : 0);
    const std::int64_t end = now + (c.forward ? costs_.forward[s] : backward);
    list(r, c.forward ? Op::kForward : whole ? Op::kBackward : Op::kInputGrad, s, index, now, end);
    if (c.forward) {
      const int successor = neighbors_.successor[s];
      if (successor < 0) {
        stages_[s].backward.ready_at[in_other_direction(index)] = end;
      } else {
        deliver(r, successor, stages_[successor].forward.ready_at[index], end, costs_.hop.activation[s]);
      }
    } else {
      if (!whole) ranks_[r].weight_grads.emplace_back(s, index);
      const int predecessor = neighbors_.predecessor[s];
      if (predecessor >= 0) {
        deliver(r, predecessor, stages_[predecessor].backward.ready_at[index], end, costs_.hop.gradient[predecessor]);
      }
    }
  }

  void run_weight_grad(int r, std::int64_t now) {
    RankState& rank = ranks_[r];
    const auto [stage, index] = rank.weight_grads[rank.weight_grads_run++];
    list(r, Op::kWeightGrad, stage, index, now, now + costs_.weight_grad[stage]);
  }

  void list(int r, Op op, int stage, int index, std::int64_t start, std::int64_t end) {
    if (end > kLatestMoment.count()) refuse_late_moment(schedule_.name);
    const int microbatch = first_of_lane_[schedule_.stages[stage].lane] + index / question_.slices;
    const int slice = (op == Op::kForward ? index : in_other_direction(index)) % question_.slices;
    const Action& action = schedule_.ranks[r].emplace_back(
        Action{.op = op, .part = static_cast<std::int16_t>(slice), .stage = stage, .microbatch = microbatch});
    RankState& rank = ranks_[r];
    const bool counts = schedule_.ranks[r].size() > 1 || question_.objective == Objective::kMakespan;
    if (counts) rank.waited += start - rank.free_at;
    rank.held_bytes += bytes_added(question_.memory, action);
    rank.free_at = decides_at_[r] = end;
  }

  void deliver(int from_rank, int stage, std::int64_t& ready_at, std::int64_t sent, std::int64_t hop) {
    const int to_rank = schedule_.stages[stage].rank;
    ready_at = sent + (to_rank == from_rank ? 0 : hop);
    if (to_rank == from_rank) return;
    decides_at_[to_rank] = std::min(decides_at_[to_rank], std::max(ready_at, ranks_[to_rank].free_at));
  }

  std::int64_t most_time_;
  const OrderQuestion& question_;
  Schedule schedule_;
  const OrderCosts& costs_;
  const ListRules& rules_;
  StageNeighbors neighbors_;
  std::vector<int> first_of_lane_;
  std::vector<StageState> stages_;
  std::vector<RankState> ranks_;
  std::vector<std::int64_t> decides_at_;  ///< [rank] when it may start something; kNotYet: unknown
  std::vector<LikeRules> alike_;          ///< [rank]
  std::vector<ReadyAction> candidates_;
};

}  // namespace

Schedule list_schedule(const OrderQuestion& question, const ListRules& rules) {
  ListedOrder listed = list_schedule_below(std::numeric_limits<std::int64_t>::max(), question, rules);
  if (listed.is_deadlocked) {
    throw ScheduleError(fmt::format("the rules of {} deadlock: raise its limits", question.frame.name));
  }
  return std::move(listed.schedule);
}

ListedOrder list_schedule_below(std::int64_t most_time, const OrderQuestion& question, const ListRules& rules) {
  return ListScheduler(most_time, question, rules).run();
}

}}  // namespace plumb::schedules
