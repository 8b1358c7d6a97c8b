#include "schedules/synthesis/list_scheduler.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// One direction of a stage: its micro-batches run in order, each once its input is there.
struct Line {
  std::deque<std::int64_t> arrivals;  ///< of the inputs known so far and not used yet
  int next = 0;                       ///< index in the lane of the next micro-batch
};

struct StageState {
  Line forward;
  Line backward;
  int in_flight = 0;
};

struct RankState {
  std::vector<int> stages;
  std::int64_t free_at = 0;
  std::int64_t wakes_at = kNever;
  std::deque<std::pair<int, int>> weight_grads;  ///< (stage, index) whose I has run
  int in_flight = 0;
  bool last_was_forward = false;
};

struct Candidate {
  bool forward = true;
  int stage = -1;
  int urgency = 0;
};

class ListScheduler {
 public:
  ListScheduler(const Schedule& frame, int ranks, const ListCosts& costs, const ListRules& rules)
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
      ranks_[frame.stages[s].rank].stages.push_back(s);
      if (neighbors_.predecessor[s] < 0) stages_[s].forward.arrivals.assign(static_cast<std::size_t>(count(s)), 0);
    }
  }

  Schedule run() {
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) wake(r, 0);
    while (!wakes_.empty()) {
      const auto [now, r] = wakes_.top();
      wakes_.pop();
      if (ranks_[r].wakes_at != now) continue;  // overtaken by an earlier wake
      ranks_[r].wakes_at = kNever;
      decide(r, now);
    }
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      if (stages_[s].in_flight > 0 || stages_[s].backward.next < count(s)) {
        throw ScheduleError(fmt::format("the rules of {} deadlock at stage {}: raise its limits", schedule_.name, s));
      }
    }
    return std::move(schedule_);
  }

 private:
  int count(int stage) const {
    const int lane = schedule_.stages[stage].lane;
    return first_of_lane_[lane + 1] - first_of_lane_[lane];
  }

  bool full(const RankState& rank, int stage) const {
    return stages_[stage].in_flight >= rules_.stage_limit[stage] ||
           (rules_.rank_limit > 0 && rank.in_flight >= rules_.rank_limit);
  }

  /// What the rank has left to run of its stages, most urgent first.
  std::vector<Candidate> candidates(const RankState& rank) const {
    std::vector<Candidate> found;
    for (const int s : rank.stages) {
      const StageState& stage = stages_[s];
      const auto add = [&](bool forward, const Line& line, int urgency) {
        if (line.next < count(s)) found.push_back({forward, s, urgency + rules_.period * line.next});
      };
      add(true, stage.forward, rules_.forward_urgency[s]);
      add(false, stage.backward, rules_.backward_urgency[s]);
    }
    std::ranges::sort(found, {}, [&](const Candidate& c) {
      const bool turn = rules_.alternates && c.forward == rank.last_was_forward;
      return std::tuple(turn, c.urgency, c.forward, -c.stage);
    });
    if (rules_.in_order && found.size() > 1) found.resize(1);
    return found;
  }

  void decide(int r, std::int64_t now) {
    RankState& rank = ranks_[r];
    std::int64_t next_arrival = kNever;
    int waits_for_memory = -1;
    for (const Candidate& c : candidates(rank)) {
      const Line& line = c.forward ? stages_[c.stage].forward : stages_[c.stage].backward;
      if (line.arrivals.empty()) continue;
      const bool blocked = c.forward && full(rank, c.stage);
      if (!blocked && line.arrivals.front() <= now) return run_compute(r, c, now);
      if (!blocked) next_arrival = std::min(next_arrival, line.arrivals.front());
      if (blocked && line.arrivals.front() <= now && waits_for_memory < 0) waits_for_memory = c.stage;
    }
    if (!rank.weight_grads.empty()) {
      const bool gap_is_known = next_arrival != kNever && waits_for_memory < 0;
      const double least_gap = rules_.least_gap_ratio * static_cast<double>(costs_.weight_grad);
      if (!gap_is_known || static_cast<double>(next_arrival - now) >= least_gap)
        return run_weight_grad(r, waits_for_memory, now);
    }
    if (next_arrival != kNever) wake(r, next_arrival);
  }

  void run_compute(int r, const Candidate& c, std::int64_t now) {
    RankState& rank = ranks_[r];
    StageState& stage = stages_[c.stage];
    Line& line = c.forward ? stage.forward : stage.backward;
    line.arrivals.pop_front();
    const int index = line.next++;
    const bool split = costs_.weight_grad > 0;
    const std::int64_t end = now + (c.forward ? costs_.forward : costs_.input_grad);
    list(r, c.forward ? Op::kForward : split ? Op::kInputGrad : Op::kBackward, c.stage, index, end);
    rank.last_was_forward = c.forward;
    if (c.forward) {
      ++stage.in_flight;
      ++rank.in_flight;
      const int successor = neighbors_.successor[c.stage];
      if (successor < 0) {
        stage.backward.arrivals.push_back(end);
      } else {
        deliver(r, successor, stages_[successor].forward, end);
      }
    } else {
      if (split) {
        rank.weight_grads.emplace_back(c.stage, index);
      } else {
        release(r, c.stage);
      }
      const int predecessor = neighbors_.predecessor[c.stage];
      if (predecessor >= 0) deliver(r, predecessor, stages_[predecessor].backward, end);
    }
  }

  /// The oldest, of the stage that waits for memory if there is one.
  void run_weight_grad(int r, int preferred_stage, std::int64_t now) {
    RankState& rank = ranks_[r];
    auto next = std::ranges::find(rank.weight_grads, preferred_stage, &std::pair<int, int>::first);
    if (next == rank.weight_grads.end()) next = rank.weight_grads.begin();
    const auto [stage, index] = *next;
    rank.weight_grads.erase(next);
    list(r, Op::kWeightGrad, stage, index, now + costs_.weight_grad);
    release(r, stage);
  }

  void list(int r, Op op, int stage, int index, std::int64_t end) {
    const int microbatch = first_of_lane_[schedule_.stages[stage].lane] + index;
    schedule_.ranks[r].push_back({.op = op, .stage = stage, .microbatch = microbatch});
    ranks_[r].free_at = end;
    wake(r, end);
  }

  void release(int r, int stage) {
    --stages_[stage].in_flight;
    --ranks_[r].in_flight;
  }

  void deliver(int from_rank, int stage, Line& line, std::int64_t sent) {
    const int to_rank = schedule_.stages[stage].rank;
    const std::int64_t arrival = sent + (to_rank == from_rank ? 0 : costs_.hop);
    line.arrivals.push_back(arrival);
    // Told at the sending action's end, not before it: a rank knows what is on its way, not what will be.
    wake(to_rank, std::max(sent, ranks_[to_rank].free_at));
  }

  void wake(int r, std::int64_t at) {
    if (at < ranks_[r].free_at || at >= ranks_[r].wakes_at) return;
    ranks_[r].wakes_at = at;
    wakes_.emplace(at, r);
  }

  using Wake = std::pair<std::int64_t, int>;

  Schedule schedule_;
  const ListCosts& costs_;
  const ListRules& rules_;
  StageNeighbors neighbors_;
  std::vector<int> first_of_lane_;
  std::vector<StageState> stages_;
  std::vector<RankState> ranks_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
};

}  // namespace

Schedule list_schedule(const Schedule& frame, int ranks, const ListCosts& costs, const ListRules& rules) {
  return ListScheduler(frame, ranks, costs, rules).run();
}

}  // namespace plumb
