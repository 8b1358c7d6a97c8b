#include "schedules/synthesis/timed_order.h"

#include <algorithm>

#include "schedules/time.h"

namespace plumb { inline namespace schedules {
TimedOrder::TimedOrder(const OrderGraph& graph) : graph_(graph), messages_(graph) {
  starts_.resize(graph.actions.size());
  ends_.resize(graph.actions.size());
  causes_.resize(graph.actions.size());
}

std::int64_t TimedOrder::time(const RankOrders& orders) {
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
    for (std::size_t& i = position[r]; i < order.size(); ++i) {
      const std::int32_t id = order[i];
      std::int32_t cause = i > 0 ? order[i - 1] : OrderGraph::kNone;
      std::int64_t start = i > 0 ? ends_[cause] : 0;
      bool known = true;
      const auto& [own, neighbor, slice] = graph_.inputs[id];
      // Inputs of the action's own stage come from earlier actions of its rank.
      if (own.id != OrderGraph::kNone) known = ends_[own.id] != OrderGraph::kUnknownEnd;
      if (slice.id != OrderGraph::kNone) known = known && ends_[slice.id] != OrderGraph::kUnknownEnd;
      if (neighbor.id != OrderGraph::kNone) {
        const std::int64_t end = ends_[neighbor.id];
        known = known && end != OrderGraph::kUnknownEnd;
        const std::int64_t arrives = end + neighbor.delay + messages_.waited(neighbor.id, end);
        if (arrives > start) start = arrives, cause = neighbor.id;
      }
      if (!known) break;
      starts_[id] = start;
      ends_[id] = start + graph_.durations[id];
      if (ends_[id] > kLatestMoment.count()) refuse_late_moment("the schedule");
      causes_[id] = cause;
      messages_.send(id, ends_[id]);
      ++timed;
      const int reader = graph_.readers[id];
      if (reader != OrderGraph::kNone && !runnable[reader]) {
        runnable[reader] = true;
        stack.push_back(reader);
      }
    }
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
