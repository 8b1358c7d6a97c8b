#pragma once
// Times the actions of an order: the inner loop of the local search.

#include <cstdint>
#include <vector>

#include "schedules/synthesis/message_times.h"
#include "schedules/synthesis/order_graph.h"

namespace plumb { inline namespace schedules {

class TimedOrder {
 public:
  static constexpr std::int64_t kDeadlock = -1;

  explicit TimedOrder(const OrderGraph& graph);

  /// Times all actions; returns the time of the graph's objective, or kDeadlock.
  std::int64_t time(const RankOrders& orders);

  /// Returns, of the times that time() found last, the actions that make the longest time of a rank, the last
  /// first. Empty after a deadlock.
  std::vector<std::int32_t> critical_path(const RankOrders& orders) const;

 private:
  const OrderGraph& graph_;
  // These are from the last call of time().
  std::vector<std::int64_t> starts_;
  std::vector<std::int64_t> ends_;
  std::vector<std::int32_t> causes_;
  MessageTimes messages_;
  int longest_rank_ = OrderGraph::kNone;
};

}}  // namespace plumb::schedules
