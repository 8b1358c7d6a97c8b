#include "schedules/search/exact_chain.h"

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

struct PartialRank {
  std::array<int, 3> done{};  ///< [kind] actions that have been ordered
  std::int64_t free_at = 0;
  std::int64_t held_bytes = 0;
};

struct NextAction {
  int rank = 0;
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
        m_(question.frame.microbatches),
        best_time_(most_time),
        ranks_(static_cast<std::size_t>(question.ranks)),
        orders_(ranks_.size()),
        forward_ends_(ranks_.size()),
        input_grad_ends_(ranks_.size()) {}

  ExactOrder run() {
    const bool is_complete = extend();
    ExactOrder found{.schedule = question_.frame, .is_complete = is_complete, .nodes = nodes_};
    found.schedule.ranks = std::move(best_);
    found.time = best_time_;
    return found;
  }

 private:
  int last_rank() const { return static_cast<int>(ranks_.size()) - 1; }
  int left(int r, Kind kind) const { return kind == kW && question_.whole_backwards ? 0 : m_ - ranks_[r].done[kind]; }
  std::int64_t duration(int r, Kind kind) const {
    return (kind == kF ? lane_.forward : kind == kI ? lane_.input_grad : lane_.weight_grad)[r];
  }
  Action action_of(int r, Kind kind) const {
    constexpr std::array kOps = {Op::kForward, Op::kInputGrad, Op::kWeightGrad};
    const Op op = kind == kI && question_.whole_backwards ? Op::kBackward : kOps[kind];
    return {.op = op, .stage = r, .microbatch = ranks_[r].done[kind]};
  }

  /// Returns when the rank's next action of a kind has its inputs and its memory, or kNever if that is not
  /// known yet.
  std::int64_t ready_at(int r, Kind kind) const {
    const PartialRank& rank = ranks_[r];
    const auto k = static_cast<std::size_t>(rank.done[kind]);
    if (left(r, kind) == 0) return kNever;
    if (kind == kF) {
      const std::vector<std::int64_t>& most = question_.memory.max_bytes;
      if (!most.empty() && rank.held_bytes + bytes_added(question_.memory, action_of(r, kF)) > most[r]) return kNever;
      if (r == 0) return 0;
      return k < forward_ends_[r - 1].size() ? forward_ends_[r - 1][k] + lane_.hop[r - 1] : kNever;
    }
    if (kind == kW) return rank.done[kI] > rank.done[kW] ? 0 : kNever;
    if (rank.done[kF] <= rank.done[kI]) return kNever;
    if (r == last_rank()) return 0;
    return k < input_grad_ends_[r + 1].size() ? input_grad_ends_[r + 1][k] + lane_.hop[r] : kNever;
  }

  /// Returns the actions that could be next on the rank whose next action could end first, as far as they
  /// could start before that end.
  std::vector<NextAction> next_actions() const {
    std::vector<NextAction> all;
    for (int r = 0; r <= last_rank(); ++r) {
      for (const Kind kind : kKinds) {
        const std::int64_t ready = ready_at(r, kind);
        if (ready == kNever) continue;
        const std::int64_t start = std::max(ready, ranks_[r].free_at);
        all.push_back({.rank = r, .kind = kind, .start = start, .end = start + duration(r, kind)});
      }
    }
    if (all.empty()) return all;
    const NextAction first = *std::ranges::min_element(all, {}, &NextAction::end);
    std::erase_if(all, [&](const NextAction& next) {
      return next.rank != first.rank || (next.start >= first.end && next.kind != first.kind);
    });
    std::ranges::stable_sort(all, {}, &NextAction::start);
    return all;
  }

  /// Returns the earliest starts of the next forwards and input gradients of all ranks.
  std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> earliest() const {
    std::vector<std::int64_t> forward(ranks_.size());
    std::vector<std::int64_t> input_grad(ranks_.size());
    for (int r = 0; r <= last_rank(); ++r) {
      forward[r] = ranks_[r].free_at;
      const int k = ranks_[r].done[kF];
      if (r == 0 || left(r, kF) == 0) continue;
      const int ahead = k - ranks_[r - 1].done[kF];
      const std::int64_t arrives = (ahead < 0 ? forward_ends_[r - 1][static_cast<std::size_t>(k)]
                                              : forward[r - 1] + (ahead + 1) * lane_.forward[r - 1]) +
                                   lane_.hop[r - 1];
      forward[r] = std::max(forward[r], arrives);
    }
    for (int r = last_rank(); r >= 0; --r) {
      const int k = ranks_[r].done[kI];
      const int own = k - ranks_[r].done[kF];
      input_grad[r] = own < 0 ? ranks_[r].free_at : forward[r] + (own + 1) * lane_.forward[r];
      if (r == last_rank() || left(r, kI) == 0) continue;
      const int ahead = k - ranks_[r + 1].done[kI];
      const std::int64_t arrives = (ahead < 0 ? input_grad_ends_[r + 1][static_cast<std::size_t>(k)]
                                              : input_grad[r + 1] + (ahead + 1) * lane_.input_grad[r + 1]) +
                                   lane_.hop[r];
      input_grad[r] = std::max(input_grad[r], arrives);
    }
    return {forward, input_grad};
  }

  std::int64_t tail(int r) const { return lane_.tails[r].way - lane_.uncounted[lane_.tails[r].to]; }

  /// Returns a time that no continuation of the partial order beats.
  std::int64_t bound() const {
    const auto [forward, input_grad] = earliest();
    std::int64_t most = 0;
    for (int r = 0; r <= last_rank(); ++r) {
      const std::int64_t f = left(r, kF) * lane_.forward[r];
      const std::int64_t i = left(r, kI) * lane_.input_grad[r];
      const std::int64_t w = left(r, kW) * lane_.weight_grad[r];
      const bool has_pending = !question_.whole_backwards && ranks_[r].done[kI] > ranks_[r].done[kW];
      const std::int64_t pending = has_pending ? (ranks_[r].done[kI] - ranks_[r].done[kW]) * lane_.weight_grad[r] : 0;
      std::int64_t start = kNever;
      if (left(r, kF) > 0) start = std::min(start, forward[r]);
      if (left(r, kI) > 0) start = std::min(start, input_grad[r]);
      const std::int64_t work_start = has_pending || start == kNever ? ranks_[r].free_at : start;
      most = std::max(most, work_start + f + i + w - lane_.uncounted[r]);
      if (left(r, kI) == 0) continue;
      most = std::max({most, start + f + i + tail(r), input_grad[r] + i + tail(r),
                       input_grad[r] + i + w - pending - lane_.uncounted[r]});
      if (left(r, kF) == 0) continue;
      const std::int64_t round_trip = lane_.first_input_grad[r] + lane_.input_grad[r] - lane_.first_forward[r];
      most = std::max(most, forward[r] + (left(r, kF) - 1) * lane_.forward[r] + round_trip + tail(r));
    }
    return most;
  }

  /// True if a partial order with the same actions was met whose ranks and messages are all ready as early.
  /// Otherwise this one is kept for later ones.
  bool is_dominated() {
    std::vector<int> done;
    std::vector<std::int64_t> times;
    for (int r = 0; r <= last_rank(); ++r) {
      const PartialRank& rank = ranks_[r];
      done.insert(done.end(), rank.done.begin(), rank.done.end());
      times.push_back(rank.free_at);
      const auto add_messages = [&](const std::vector<std::int64_t>& ends, Kind kind, std::int64_t hop) {
        for (auto k = static_cast<std::size_t>(rank.done[kind]); k < ends.size(); ++k) {
          times.push_back(std::max(rank.free_at, ends[k] + hop));
        }
      };
      if (r > 0) add_messages(forward_ends_[r - 1], kF, lane_.hop[r - 1]);
      if (r < last_rank()) add_messages(input_grad_ends_[r + 1], kI, lane_.hop[r]);
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
      const PartialRank before = ranks_[next.rank];
      run(next);
      const bool is_complete = extend();
      take_back(next, before);
      if (!is_complete) return false;
    }
    return true;
  }

  void run(const NextAction& next) {
    PartialRank& rank = ranks_[next.rank];
    const Action action = action_of(next.rank, next.kind);
    orders_[next.rank].push_back(action);
    rank.held_bytes += bytes_added(question_.memory, action);
    rank.free_at = next.end;
    ++rank.done[next.kind];
    if (next.kind == kF) forward_ends_[next.rank].push_back(next.end);
    if (next.kind == kI) input_grad_ends_[next.rank].push_back(next.end);
  }

  void take_back(const NextAction& next, const PartialRank& before) {
    ranks_[next.rank] = before;
    orders_[next.rank].pop_back();
    if (next.kind == kF) forward_ends_[next.rank].pop_back();
    if (next.kind == kI) input_grad_ends_[next.rank].pop_back();
  }

  /// Keeps the order if it is no deadlock for want of memory; its bound, its time, is below the best.
  void keep_if_whole() {
    for (int r = 0; r <= last_rank(); ++r) {
      if (left(r, kF) + left(r, kI) + left(r, kW) > 0) return;
    }
    best_ = orders_;
    best_time_ = bound();
  }

  const OrderQuestion& question_;
  const ExactEffort& effort_;
  LaneTimes lane_;
  int m_;
  std::int64_t best_time_;
  std::int64_t nodes_ = 0;
  std::vector<PartialRank> ranks_;
  std::vector<std::vector<Action>> orders_;
  std::vector<std::vector<Action>> best_;
  std::vector<std::vector<std::int64_t>> forward_ends_;     ///< [rank][micro-batch]
  std::vector<std::vector<std::int64_t>> input_grad_ends_;  ///< [rank][micro-batch]
  std::map<std::vector<int>, std::vector<std::vector<std::int64_t>>> met_;
};

}  // namespace

ExactOrder exact_chain(const OrderQuestion& question, std::int64_t most_time, const ExactEffort& effort) {
  if (question.frame.stages != loop_placement(question.ranks, question.ranks)) {
    throw ScheduleError(fmt::format("{} has to be a chain of one stage a rank", question.frame.name));
  }
  return BranchAndBound(question, most_time, effort).run();
}

}}  // namespace plumb::schedules
