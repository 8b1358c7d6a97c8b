#include "schedules/search/exact_order.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/bounds/lane_times.h"
#include "schedules/error.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// A whole backward counts as an input gradient, and its weight gradient takes no time and is not listed.
enum Kind : std::size_t { kF, kI, kW };
constexpr std::array kKinds = {kI, kF, kW};

struct PartialStage {
  std::array<int, 3> done{};  ///< [kind] actions that have been ordered
  /// Its next forward runs behind another action of its rank, which has that many in its list. -1: it need not.
  std::ptrdiff_t waits_behind = -1;
};

struct PartialRank {
  std::int64_t free_at = 0;
  std::int64_t held_bytes = 0;
};

struct NextAction {
  int position = 0;  ///< of the stage along its lane
  Kind kind = kF;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

class BranchAndBound {
 public:
  BranchAndBound(const OrderQuestion& question, std::int64_t most_time, const ExactEffort& effort)
      : question_(question),
        effort_(effort),
        lane_(lanes_of(question).front()),
        units_(question.frame.microbatches * question.slices),
        best_time_(most_time),
        stages_(lane_.stages.size()),
        ranks_(static_cast<std::size_t>(question.ranks)),
        positions_(ranks_.size()),
        orders_(ranks_.size()),
        forward_ends_(stages_.size()),
        input_grad_ends_(stages_.size()) {
    for (int s = 0; s <= last(); ++s) positions_[lane_.ranks[s]].push_back(s);
  }

  ExactOrder run() {
    const bool is_complete = extend();
    ExactOrder found{.schedule = question_.frame, .is_complete = is_complete, .nodes = nodes_};
    found.schedule.ranks = std::move(best_);
    found.time = best_time_;
    return found;
  }

 private:
  int last() const { return static_cast<int>(stages_.size()) - 1; }
  PartialRank& rank_of(int s) { return ranks_[lane_.ranks[s]]; }
  const PartialRank& rank_of(int s) const { return ranks_[lane_.ranks[s]]; }
  bool waits(int s) const { return stages_[s].waits_behind == std::ssize(orders_[lane_.ranks[s]]); }
  int left(int s, Kind kind) const {
    return kind == kW && question_.whole_backwards ? 0 : units_ - stages_[s].done[kind];
  }
  std::int64_t duration(int s, Kind kind) const {
    return (kind == kF ? lane_.forward : kind == kI ? lane_.input_grad : lane_.weight_grad)[s];
  }
  std::int64_t work_left(int s, Kind kind) const { return left(s, kind) * duration(s, kind); }
  Action action_of(int s, Kind kind) const {
    constexpr std::array kOps = {Op::kForward, Op::kInputGrad, Op::kWeightGrad};
    const Op op = kind == kI && question_.whole_backwards ? Op::kBackward : kOps[kind];
    const int slice = stages_[s].done[kind] % question_.slices;
    const int part = kind == kF ? slice : question_.slices - 1 - slice;
    return {.op = op,
            .part = static_cast<std::int16_t>(part),
            .stage = lane_.stages[s],
            .microbatch = stages_[s].done[kind] / question_.slices};
  }

  /// Returns the forwards that its stage must run before it runs an input gradient: those of all slices of the
  /// micro-batch, since the last one goes back first.
  int forwards_before(int input_grad) const { return (input_grad / question_.slices + 1) * question_.slices; }

  /// Returns when the stage's next action of a kind has its inputs and its memory, or kNever if that is not
  /// known yet.
  std::int64_t ready_at(int s, Kind kind) const {
    const PartialStage& stage = stages_[s];
    const auto k = static_cast<std::size_t>(stage.done[kind]);
    if (left(s, kind) == 0) return kNever;
    if (kind == kF) {
      if (waits(s)) return kNever;
      const std::vector<std::int64_t>& most = question_.memory.max_bytes;
      const std::int64_t held = rank_of(s).held_bytes + bytes_added(question_.memory, action_of(s, kF));
      if (!most.empty() && held > most[lane_.ranks[s]]) return kNever;
      if (s == 0) return 0;
      return k < forward_ends_[s - 1].size() ? forward_ends_[s - 1][k] + lane_.hop.activation[s - 1] : kNever;
    }
    if (kind == kW) return stage.done[kI] > stage.done[kW] ? 0 : kNever;
    if (stage.done[kF] < forwards_before(stage.done[kI])) return kNever;
    if (s == last()) return 0;
    return k < input_grad_ends_[s + 1].size() ? input_grad_ends_[s + 1][k] + lane_.hop.gradient[s] : kNever;
  }

  /// Returns the actions that could be next on the rank whose next action could end first, as far as they could start
  /// before that end.
  std::vector<NextAction> next_actions() const {
    std::vector<NextAction> all;
    for (int s = 0; s <= last(); ++s) {
      for (const Kind kind : kKinds) {
        const std::int64_t ready = ready_at(s, kind);
        if (ready == kNever) continue;
        const std::int64_t start = std::max(ready, rank_of(s).free_at);
        all.push_back({.position = s, .kind = kind, .start = start, .end = start + duration(s, kind)});
      }
    }
    if (all.empty()) return all;
    const NextAction first = *std::ranges::min_element(all, {}, &NextAction::end);
    std::erase_if(all, [&](const NextAction& next) {
      const bool is_first = next.position == first.position && next.kind == first.kind;
      return lane_.ranks[next.position] != lane_.ranks[first.position] || (next.start >= first.end && !is_first);
    });
    std::ranges::stable_sort(all, {}, &NextAction::start);
    return all;
  }

  /// True if an action takes memory that another stage of its rank may need first. It may then be better to wait,
  /// where otherwise nothing is lost by an action that ends before any other starts.
  bool may_wait(const NextAction& next) const {
    const int s = next.position;
    return next.kind == kF && positions_[lane_.ranks[s]].size() > 1 && !question_.memory.max_bytes.empty() &&
           question_.memory.activation_bytes[lane_.stages[s]] > 0;
  }

  /// The earliest starts of the next forwards and input gradients, by position.
  struct Earliest {
    std::vector<std::int64_t> forward;
    std::vector<std::int64_t> input_grad;
  };

  Earliest earliest() const {
    Earliest first{std::vector<std::int64_t>(stages_.size()), std::vector<std::int64_t>(stages_.size())};
    for (int s = 0; s <= last(); ++s) {
      first.forward[s] = rank_of(s).free_at;
      const int k = stages_[s].done[kF];
      if (s == 0 || left(s, kF) == 0) continue;
      const int ahead = k - stages_[s - 1].done[kF];
      const std::int64_t arrives = (ahead < 0 ? forward_ends_[s - 1][static_cast<std::size_t>(k)]
                                              : first.forward[s - 1] + (ahead + 1) * lane_.forward[s - 1]) +
                                   lane_.hop.activation[s - 1];
      first.forward[s] = std::max(first.forward[s], arrives);
    }
    for (int s = last(); s >= 0; --s) {
      const int k = stages_[s].done[kI];
      const int own = forwards_before(k) - stages_[s].done[kF];
      first.input_grad[s] = own <= 0 ? rank_of(s).free_at : first.forward[s] + own * lane_.forward[s];
      if (s == last() || left(s, kI) == 0) continue;
      const int ahead = k - stages_[s + 1].done[kI];
      const std::int64_t arrives = (ahead < 0 ? input_grad_ends_[s + 1][static_cast<std::size_t>(k)]
                                              : first.input_grad[s + 1] + (ahead + 1) * lane_.input_grad[s + 1]) +
                                   lane_.hop.gradient[s];
      first.input_grad[s] = std::max(first.input_grad[s], arrives);
    }
    return first;
  }

  std::int64_t tail(int s) const { return lane_.tails[s].way - lane_.uncounted[lane_.tails[s].to]; }

  /// Returns the bound by what is left of one stage alone.
  std::int64_t stage_bound(int s, const Earliest& first) const {
    if (left(s, kI) == 0) return 0;
    const std::int64_t i = work_left(s, kI);
    const int pending = question_.whole_backwards ? 0 : stages_[s].done[kI] - stages_[s].done[kW];
    const std::int64_t later_w = work_left(s, kW) - pending * lane_.weight_grad[s];
    std::int64_t most =
        std::max(first.input_grad[s] + i + tail(s), first.input_grad[s] + i + later_w - lane_.uncounted[s]);
    if (left(s, kF) == 0) return most;
    // The last forward is of the slice that goes back first: the other slices of its micro-batch are behind it.
    const std::int64_t round_trip =
        lane_.first_input_grad[s] + question_.slices * lane_.input_grad[s] - lane_.first_forward[s];
    return std::max(most, first.forward[s] + (left(s, kF) - 1) * lane_.forward[s] + round_trip + tail(s));
  }

  /// Returns the bound by what is left of a rank: all of it, and for each of its stages the forwards and input
  /// gradients of that one and later ones with the way back behind the last of them.
  std::int64_t rank_bound(int r, const Earliest& first) const {
    std::int64_t start = kNever, passes = 0, weight_grads = 0, most = 0;
    bool has_pending = false;
    for (std::size_t at = positions_[r].size(); at-- > 0;) {
      const int s = positions_[r][at];
      if (left(s, kF) > 0) start = std::min(start, first.forward[s]);
      if (left(s, kI) > 0) start = std::min(start, first.input_grad[s]);
      passes += work_left(s, kF) + work_left(s, kI);
      weight_grads += work_left(s, kW);
      has_pending = has_pending || (!question_.whole_backwards && stages_[s].done[kI] > stages_[s].done[kW]);
      if (left(s, kI) > 0) most = std::max(most, start + passes + tail(s));
    }
    if (positions_[r].empty()) return 0;
    const std::int64_t work_start = has_pending || start == kNever ? ranks_[r].free_at : start;
    return std::max(most, work_start + passes + weight_grads - lane_.uncounted[positions_[r].front()]);
  }

  /// Returns a time that no continuation of the partial order beats.
  std::int64_t bound() const {
    const Earliest first = earliest();
    std::int64_t most = 0;
    for (int r = 0; r < question_.ranks; ++r) most = std::max(most, rank_bound(r, first));
    for (int s = 0; s <= last(); ++s) most = std::max(most, stage_bound(s, first));
    return most;
  }

  /// True if a partial order with the same actions was met whose ranks and messages are all ready as early.
  /// Otherwise this one is kept for later ones.
  bool is_dominated() {
    std::vector<int> done;
    std::vector<std::int64_t> times;
    for (const PartialRank& rank : ranks_) times.push_back(rank.free_at);
    for (int s = 0; s <= last(); ++s) {
      const PartialStage& stage = stages_[s];
      done.insert(done.end(), stage.done.begin(), stage.done.end());
      done.push_back(waits(s) ? 1 : 0);
      const auto add_messages = [&](const std::vector<std::int64_t>& ends, Kind kind, std::int64_t hop) {
        for (auto k = static_cast<std::size_t>(stage.done[kind]); k < ends.size(); ++k) {
          times.push_back(std::max(rank_of(s).free_at, ends[k] + hop));
        }
      };
      if (s > 0) add_messages(forward_ends_[s - 1], kF, lane_.hop.activation[s - 1]);
      if (s < last()) add_messages(input_grad_ends_[s + 1], kI, lane_.hop.gradient[s]);
    }
    constexpr std::size_t kMostKept = 64;
    std::vector<std::vector<std::int64_t>>& met = met_[done];
    const auto no_later = [&times](const std::vector<std::int64_t>& other) {
      return std::ranges::equal(other, times, [](std::int64_t a, std::int64_t b) { return a <= b; });
    };
    if (std::ranges::any_of(met, no_later)) return true;
    if (met.size() < kMostKept) met.push_back(std::move(times));
    return false;
  }

  /// Tries all continuations of the partial order; false if the effort did not do.
  bool extend() {
    if (nodes_ >= effort_.most_nodes || (effort_.is_stopped && effort_.is_stopped())) return false;
    ++nodes_;
    if (bound() >= best_time_) return true;
    const std::vector<NextAction> nexts = next_actions();
    if (nexts.empty()) {
      keep_if_whole();
      return true;
    }
    if (is_dominated()) return true;
    for (const NextAction& next : nexts) {
      const PartialStage stage_before = stages_[next.position];
      const PartialRank rank_before = rank_of(next.position);
      run(next);
      const bool is_complete = extend();
      take_back(next, stage_before, rank_before);
      if (!is_complete) return false;
    }
    const NextAction& first = *std::ranges::min_element(nexts, {}, &NextAction::end);
    return !may_wait(first) || extend_without(first.position);
  }

  /// Tries all continuations in which the next forward of a stage is not the next action of its rank.
  bool extend_without(int s) {
    const std::ptrdiff_t before = std::exchange(stages_[s].waits_behind, std::ssize(orders_[lane_.ranks[s]]));
    const bool is_complete = extend();
    stages_[s].waits_behind = before;
    return is_complete;
  }

  void run(const NextAction& next) {
    const int s = next.position;
    const Action action = action_of(s, next.kind);
    orders_[lane_.ranks[s]].push_back(action);
    rank_of(s).held_bytes += bytes_added(question_.memory, action);
    rank_of(s).free_at = next.end;
    ++stages_[s].done[next.kind];
    if (next.kind == kF) forward_ends_[s].push_back(next.end);
    if (next.kind == kI) input_grad_ends_[s].push_back(next.end);
  }

  void take_back(const NextAction& next, const PartialStage& stage_before, const PartialRank& rank_before) {
    const int s = next.position;
    stages_[s] = stage_before;
    rank_of(s) = rank_before;
    orders_[lane_.ranks[s]].pop_back();
    if (next.kind == kF) forward_ends_[s].pop_back();
    if (next.kind == kI) input_grad_ends_[s].pop_back();
  }

  /// Keeps the order if it is no deadlock for want of memory; its bound, its time, is below the best.
  void keep_if_whole() {
    for (int s = 0; s <= last(); ++s) {
      if (left(s, kF) + left(s, kI) + left(s, kW) > 0) return;
    }
    best_ = orders_;
    best_time_ = bound();
  }

  const OrderQuestion& question_;
  const ExactEffort& effort_;
  LaneTimes lane_;
  int units_;  ///< slices of all micro-batches
  std::int64_t best_time_;
  std::int64_t nodes_ = 0;
  std::vector<PartialStage> stages_;  ///< [position]
  std::vector<PartialRank> ranks_;
  std::vector<std::vector<int>> positions_;                 ///< [rank] its positions, ascending
  std::vector<std::vector<Action>> orders_;                 ///< [rank]
  std::vector<std::vector<Action>> best_;                   ///< [rank]
  std::vector<std::vector<std::int64_t>> forward_ends_;     ///< [position][slice of a micro-batch, as they come]
  std::vector<std::vector<std::int64_t>> input_grad_ends_;  ///< [position][slice of a micro-batch, as they come]
  std::map<std::vector<int>, std::vector<std::vector<std::int64_t>>> met_;
};

}  // namespace

bool is_searchable_exactly(const OrderQuestion& question) {
  return !question.costs.has_busy_links() && !question.costs.has_pairs() &&
         std::ranges::all_of(question.frame.stages, [](const StagePlace& place) { return place.lane == 0; });
}

ExactOrder exact_order(const OrderQuestion& question, std::int64_t most_time, const ExactEffort& effort) {
  if (!is_searchable_exactly(question)) {
    throw ScheduleError(
        fmt::format("{} has several lanes, pairs that overlap, or messages that wait for each other: an exhaustive "
                    "search knows none of them",
                    question.frame.name));
  }
  return BranchAndBound(question, most_time, effort).run();
}

}}  // namespace plumb::schedules
