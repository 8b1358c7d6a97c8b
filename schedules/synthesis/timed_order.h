#pragma once
// Times the actions of an order: the inner loop of the local search.

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/synthesis/message_times.h"
#include "schedules/synthesis/order_graph.h"

namespace plumb { inline namespace schedules {

class TimedOrder {
 public:
  static constexpr std::int64_t kDeadlock = -1;

  explicit TimedOrder(const OrderGraph& graph);

  /// Times all actions; returns the time of the graph's objective, or kDeadlock. A pair starts when the inputs of both
  /// are there, and both end at its end.
  std::int64_t time(const RankOrders& orders, const Joined& joined);

  /// Times the schedule's own order.
  std::int64_t time() { return time(graph_.listed, graph_.joined); }

  /// Returns, of the times that time() found last, the actions that make the longest time of a rank, the last
  /// first. Empty after a deadlock.
  std::vector<std::int32_t> critical_path(const RankOrders& orders) const;

 private:
  /// Times an action, or the two of a pair, if their inputs are known; `cause` is what its rank runs before. Returns false
  /// if not.
  template <std::size_t kCount>
  bool run(std::span<const std::int32_t, kCount> together, std::int32_t cause);

  const OrderGraph& graph_;
  // These are from the last call of time().
  std::vector<std::int64_t> starts_;
  std::vector<std::int64_t> ends_;
  std::vector<std::int32_t> causes_;
  MessageTimes messages_;
  int longest_rank_ = OrderGraph::kNone;
};

}}  // namespace plumb::schedules
