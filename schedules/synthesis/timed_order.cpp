#include "schedules/synthesis/timed_order.h"

#include <algorithm>

#include "schedules/time.h"

namespace plumb { inline namespace schedules {
TimedOrder::TimedOrder(const OrderGraph& graph) : graph_(graph), messages_(graph) {
  starts_.resize(graph.actions.size());
  ends_.resize(graph.actions.size());
  causes_.resize(graph.actions.size());
}

// The local search is a quarter slower where this is a call.
template <std::size_t kCount>
[[gnu::always_inline]] inline bool TimedOrder::run(std::span<const std::int32_t, kCount> together, std::int32_t cause) {
  std::int64_t start = cause == OrderGraph::kNone ? 0 : ends_[cause];
  for (const std::int32_t id : together) {
    const auto& [own, neighbor, slice] = graph_.inputs[id];
    // Inputs of the action's own stage come from earlier actions of its rank.
    if (own.id != OrderGraph::kNone && ends_[own.id] == OrderGraph::kUnknownEnd) return false;
    if (slice.id != OrderGraph::kNone && ends_[slice.id] == OrderGraph::kUnknownEnd) return false;
    if (neighbor.id == OrderGraph::kNone) continue;
    const std::int64_t end = ends_[neighbor.id];
    if (end == OrderGraph::kUnknownEnd) return false;
    const std::int64_t arrives = end + neighbor.delay + messages_.waited(neighbor.id, end);
    if (arrives > start) start = arrives, cause = neighbor.id;
  }
  const std::int32_t id = together.front();
  std::int64_t end = start;
  if constexpr (kCount == 1) {
    end += graph_.durations[id];
  } else {
    end += pair_duration(graph_.costs, graph_.actions[id], graph_.actions[together.back()]);
  }
  if (end > kLatestMoment.count()) refuse_late_moment("the schedule");
  for (const std::int32_t each : together) {
    starts_[each] = start;
    ends_[each] = end;
    causes_[each] = cause;
    messages_.send(each, end);
  }
  return true;
}

std::int64_t TimedOrder::time(const RankOrders& orders, const Joined& joined) {
  std::ranges::fill(ends_, OrderGraph::kUnknownEnd);
  messages_.restart();
  std::vector<std::size_t> position(orders.size(), 0);
  std::vector<bool> runnable(orders.size(), true);
  std::vector<int> stack;
  for (int r = static_cast<int>(orders.size()) - 1; r >= 0; --r) stack.push_back(r);
  std::size_t timed = 0;
  while (!stack.empty()) {
    const int r = stack.back();
    stack.pop_back();
    runnable[r] = false;
    const std::vector<std::int32_t>& order = orders[r];
    std::size_t i = position[r];
    while (i < order.size()) {
      const bool is_pair =
          graph_.may_pair && joined[order[i]] != 0 && i + 1 < order.size() && graph_.can_pair(order[i], order[i + 1]);
      const std::int32_t cause = i > 0 ? order[i - 1] : OrderGraph::kNone;
      const bool has_run = is_pair ? run(std::span<const std::int32_t, 2>(&order[i], 2), cause)
                                   : run(std::span<const std::int32_t, 1>(&order[i], 1), cause);
      if (!has_run) break;
      for (const std::size_t end = i + (is_pair ? 2 : 1); i < end; ++i, ++timed) {
        const int reader = graph_.readers[order[i]];
        if (reader == OrderGraph::kNone || runnable[reader]) continue;
        runnable[reader] = true;
        stack.push_back(reader);
      }
    }
    position[r] = i;
  }
  longest_rank_ = OrderGraph::kNone;
  if (timed < graph_.actions.size()) return kDeadlock;
  std::int64_t longest = 0;
  for (int r = 0; r < static_cast<int>(orders.size()); ++r) {
    if (orders[r].empty()) continue;
    const std::int64_t uncounted = graph_.objective == Objective::kSpan ? starts_[orders[r].front()] : 0;
    const std::int64_t here = ends_[orders[r].back()] - uncounted;
    if (here <= longest) continue;
    longest = here;
    longest_rank_ = r;
  }
  return longest;
}

std::vector<std::int32_t> TimedOrder::critical_path(const RankOrders& orders) const {
  std::vector<std::int32_t> path;
  if (longest_rank_ == OrderGraph::kNone) return path;
  for (std::int32_t id = orders[longest_rank_].back(); id != OrderGraph::kNone; id = causes_[id]) path.push_back(id);
  return path;
}

}}  // namespace plumb::schedules
