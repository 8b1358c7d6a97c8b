#include "schedules/synthesis/local_search.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/synthesis/timed_order.h"

namespace plumb { inline namespace schedules {
namespace {

/// Moves one action of a rank's list from one position to another.
struct Move {
  int rank = 0;
  std::ptrdiff_t from = 0;
  std::ptrdiff_t to = 0;
};

void apply(std::vector<std::int32_t>& order, const Move& move) {
  const auto begin = order.begin();
  if (move.from < move.to) std::rotate(begin + move.from, begin + move.from + 1, begin + move.to + 1);
  if (move.to < move.from) std::rotate(begin + move.to, begin + move.from, begin + move.from + 1);
}

/// Returns a move that may shorten the critical path (given with the last action first). The path's stretch on one rank
/// is a block whose last action feeds another rank, so either that action goes earlier, or an action of the block
/// leaves it.
Move random_move(const OrderGraph& graph, const RankOrders& orders, const std::vector<std::int32_t>& path,
                 std::mt19937_64& random) {
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

/// Checks that each action stands behind the action of its own rank that it needs, and that no more activations are
/// held than allowed.
class RankRules {
 public:
  RankRules(const OrderGraph& graph, int limit) : graph_(graph), limit_(limit), seen_(graph.actions.size(), 0) {}

  bool hold(const std::vector<std::int32_t>& order) {
    ++round_;
    int held = 0;
    for (const std::int32_t id : order) {
      const std::int32_t needed = graph_.inputs[id][0].id;
      if (needed != OrderGraph::kNone && seen_[needed] != round_) return false;
      seen_[id] = round_;
      const Op op = graph_.actions[id].op;
      if (op == Op::kForward) ++held;
      if (gives_weight_gradient(op)) --held;
      if (limit_ > 0 && held > limit_) return false;
    }
    return true;
  }

 private:
  const OrderGraph& graph_;
  int limit_;
  int round_ = 0;
  std::vector<int> seen_;  ///< [action] the round that saw it last
};

}  // namespace

std::int64_t longest_span(const Schedule& schedule, const OrderCosts& costs) {
  const OrderGraph graph(schedule, costs);
  const std::int64_t span = TimedOrder(graph).span(graph.listed);
  if (span == TimedOrder::kDeadlock) throw ScheduleError(fmt::format("{} deadlocks: validate it", schedule.name));
  return span;
}

Schedule shorten_span(const Schedule& schedule, const OrderCosts& costs, const LocalSearch& search) {
  std::int64_t best_span = longest_span(schedule, costs);
  const OrderGraph graph(schedule, costs);
  TimedOrder timed(graph);
  RankOrders orders = graph.listed;
  RankRules rules(graph, search.rank_limit);
  for (std::size_t r = 0; r < orders.size(); ++r) {
    if (!rules.hold(orders[r])) {
      throw ScheduleError(fmt::format("rank {} of {} holds more than {} activations to begin with: raise the limit", r,
                                      schedule.name, search.rank_limit));
    }
  }
  RankOrders best = orders;
  std::int64_t span = timed.span(orders);
  std::vector<std::int32_t> path = timed.critical_path(orders);
  const std::int64_t first_threshold =
      (costs.forward.front() + costs.input_grad.front() + costs.weight_grad.front()) / 6;
  std::mt19937_64 random(search.seed);
  for (int step = 0; step < search.steps && best_span > search.goal && !path.empty(); ++step) {
    const Move move = random_move(graph, orders, path, random);
    if (move.from == move.to) continue;
    apply(orders[move.rank], move);
    const std::int64_t moved = rules.hold(orders[move.rank]) ? timed.span(orders) : TimedOrder::kDeadlock;
    const std::int64_t left = search.steps - step;  // threshold is first_threshold * left / steps, within 64 bits
    const std::int64_t threshold =
        first_threshold / search.steps * left + first_threshold % search.steps * left / search.steps;
    if (moved == TimedOrder::kDeadlock || moved > span + threshold) {
      apply(orders[move.rank], {move.rank, move.to, move.from});
      continue;
    }
    span = moved;
    path = timed.critical_path(orders);
    if (span < best_span) {
      best_span = span;
      best = orders;
    }
  }
  return in_order(schedule, graph, best);
}

}}  // namespace plumb::schedules
