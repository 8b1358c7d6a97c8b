#include "schedules/synthesis/local_search.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/synthesis/timed_order.h"

namespace plumb { inline namespace schedules {
namespace {

/// Moves one action of a rank's list from one position to another, and joins a forward to the action behind it or takes it
/// apart from it.
struct Move {
  int rank = 0;
  std::ptrdiff_t from = 0;
  std::ptrdiff_t to = 0;
  std::int32_t turned = OrderGraph::kNone;  ///< the forward that is joined or taken apart

  bool changes() const { return from != to || turned != OrderGraph::kNone; }
};

void apply(std::vector<std::int32_t>& order, const Move& move) {
  const auto begin = order.begin();
  if (move.from < move.to) std::rotate(begin + move.from, begin + move.from + 1, begin + move.to + 1);
  if (move.to < move.from) std::rotate(begin + move.to, begin + move.from, begin + move.from + 1);
}

void apply(RankOrders& orders, Joined& joined, const Move& move) {
  apply(orders[move.rank], move);
  if (move.turned != OrderGraph::kNone) joined[move.turned] ^= 1;
}

Move reversed(const Move& move) {
  return {.rank = move.rank, .from = move.to, .to = move.from, .turned = move.turned};
}

/// Returns a move that takes the pair of the action at a position apart, or joins it with an action near it that it takes
/// less time with; none if there is no such action.
Move pairing_move(const OrderGraph& graph, const RankOrders& orders, const Joined& joined, int rank,
                  std::ptrdiff_t here, std::mt19937_64& random) {
  constexpr std::ptrdiff_t kFarthestPartner = 4;
  const std::vector<std::int32_t>& order = orders[rank];
  const std::int32_t id = order[here];
  Move move{.rank = rank, .from = here, .to = here};
  if (joined[id] != 0) {
    move.turned = id;
    return move;
  }
  std::vector<std::ptrdiff_t> partners;
  for (std::ptrdiff_t there = here - kFarthestPartner; there <= here + kFarthestPartner; ++there) {
    if (there < 0 || there >= std::ssize(order) || there == here) continue;
    if (graph.pair_gain(id, order[there]) > 0 || graph.pair_gain(order[there], id) > 0) partners.push_back(there);
  }
  if (partners.empty()) return move;
  const auto there = partners[random() % partners.size()];
  // The partner comes to stand behind the forward, or the forward ahead of its partner.
  const bool is_forward = graph.can_pair(id, order[there]);
  const std::ptrdiff_t to = is_forward ? here + 1 : here;
  move.from = there;
  move.to = there < to ? to - 1 : to;
  const std::int32_t forward = is_forward ? id : order[there];
  if (joined[forward] == 0) move.turned = forward;
  return move;
}

/// Returns a move that may shorten the critical path (given with the last action first). The path's stretch on one rank
/// is a block whose last action feeds another rank, so either that action goes earlier, or an action of the block
/// leaves it.
Move random_move(const OrderGraph& graph, const RankOrders& orders, const Joined& joined,
                 const std::vector<std::int32_t>& path, std::mt19937_64& random) {
  constexpr std::ptrdiff_t kFarthestLeap = 3;  // in positions beyond the block
  const auto below = [&random](std::ptrdiff_t n) {
    return static_cast<std::ptrdiff_t>(random() % static_cast<std::uint64_t>(n));
  };
  const auto chosen = static_cast<std::size_t>(below(std::ssize(path)));
  const int rank = graph.ranks[path[chosen]];
  std::size_t first = chosen;
  std::size_t last = chosen;
  while (first + 1 < path.size() && graph.ranks[path[first + 1]] == rank) ++first;
  while (last > 0 && graph.ranks[path[last - 1]] == rank) --last;
  const std::vector<std::int32_t>& order = orders[rank];
  const auto position = [&order](std::int32_t id) { return std::ranges::find(order, id) - order.begin(); };
  const std::ptrdiff_t block_begin = position(path[first]);
  const std::ptrdiff_t block_end = position(path[last]);
  const std::ptrdiff_t here = position(path[chosen]);
  if (graph.costs.has_pairs() && below(4) == 0) return pairing_move(graph, orders, joined, rank, here, random);
  switch (below(4)) {
    case 0:
      return {rank, block_end, block_begin + below(block_end - block_begin + 1)};
    case 1:
      return {rank, here, std::min(std::ssize(order) - 1, block_end + 1 + below(kFarthestLeap))};
    case 2:
      return {rank, here, std::min(std::ssize(order) - 1, here + 1)};
    default:
      return {rank, here, std::max<std::ptrdiff_t>(0, block_begin - 1 - below(kFarthestLeap))};
  }
}

/// Checks that each action stands behind the actions of its own stage that it needs, and that no more is held
/// than a rank may hold.
class RankRules {
 public:
  explicit RankRules(const OrderGraph& graph) : graph_(graph), seen_(graph.actions.size(), 0) {}

  bool hold(int rank, const std::vector<std::int32_t>& order) {
    ++round_;
    std::int64_t held = 0;
    for (const std::int32_t id : order) {
      for (const std::int32_t needed : {graph_.inputs[id][0].id, graph_.inputs[id][2].id}) {
        if (needed != OrderGraph::kNone && seen_[needed] != round_) return false;
      }
      seen_[id] = round_;
      held += graph_.bytes_added[id];
      if (!graph_.max_bytes.empty() && held > graph_.max_bytes[rank]) return false;
    }
    return true;
  }

 private:
  const OrderGraph& graph_;
  int round_ = 0;
  std::vector<int> seen_;  ///< [action] the round that saw it last
};

}  // namespace

std::int64_t order_time(const Schedule& schedule, const OrderQuestion& question) {
  const OrderGraph graph(schedule, question);
  const std::int64_t time = TimedOrder(graph).time();
  if (time == TimedOrder::kDeadlock) throw ScheduleError(fmt::format("{} deadlocks: validate it", schedule.name));
  return time;
}

Schedule shorten_order(const Schedule& schedule, const OrderQuestion& question, const LocalSearch& search) {
  std::int64_t best_time = order_time(schedule, question);
  const OrderGraph graph(schedule, question);
  TimedOrder timed(graph);
  RankOrders orders = graph.listed;
  Joined joined = graph.joined;
  RankRules rules(graph);
  for (int r = 0; r < static_cast<int>(orders.size()); ++r) {
    if (!rules.hold(r, orders[r])) {
      throw ScheduleError(
          fmt::format("rank {} of {} holds more than its memory to begin with: give it more", r, schedule.name));
    }
  }
  RankOrders best = orders;
  Joined best_joined = joined;
  std::int64_t time = timed.time(orders, joined);
  std::vector<std::int32_t> path = timed.critical_path(orders);
  const OrderCosts& costs = question.costs;
  const std::int64_t first_threshold =
      (costs.forward.front() + costs.input_grad.front() + costs.weight_grad.front()) / 6;
  std::mt19937_64 random(search.seed);
  constexpr int kStepsBetweenQuestions = 64;  // whether the search is stopped
  for (int step = 0; step < search.steps && best_time > search.goal && !path.empty(); ++step) {
    if (step % kStepsBetweenQuestions == 0 && search.is_stopped && search.is_stopped()) break;
    const Move move = random_move(graph, orders, joined, path, random);
    if (!move.changes()) continue;
    apply(orders, joined, move);
    const std::int64_t moved =
        rules.hold(move.rank, orders[move.rank]) ? timed.time(orders, joined) : TimedOrder::kDeadlock;
    const std::int64_t left = search.steps - step;  // threshold is first_threshold * left / steps, within 64 bits
    const std::int64_t threshold =
        first_threshold / search.steps * left + first_threshold % search.steps * left / search.steps;
    if (moved == TimedOrder::kDeadlock || moved > time + threshold) {
      apply(orders, joined, reversed(move));
      continue;
    }
    time = moved;
    path = timed.critical_path(orders);
    if (time < best_time) {
      best_time = time;
      best = orders;
      best_joined = joined;
    }
  }
  return in_order(schedule, graph, best, best_joined);
}

}}  // namespace plumb::schedules
