#pragma once
// When the messages of an order leave: first in, first out through each channel, which a message has to itself for a
// while. Senders of a channel are of one rank, so that they come in its order.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedules/synthesis/order_graph.h"

namespace plumb { inline namespace schedules {

class MessageTimes {
 public:
  explicit MessageTimes(const OrderGraph& graph)
      : graph_(graph), free_at_(static_cast<std::size_t>(graph.channels)), left_(graph.actions.size()) {}

  void restart() { std::ranges::fill(free_at_, 0); }

  /// Sends the message of an action that ends then, if it has one.
  void send(std::int32_t id, std::int64_t end) {
    if (graph_.channels == 0) return;
    const OrderGraph::Message& message = graph_.messages[static_cast<std::size_t>(id)];
    left_[static_cast<std::size_t>(id)] = end;
    if (message.channel == OrderGraph::kNone) return;
    std::int64_t& free_at = free_at_[static_cast<std::size_t>(message.channel)];
    left_[static_cast<std::size_t>(id)] = std::max(end, free_at);
    free_at = left_[static_cast<std::size_t>(id)] + message.busy;
  }

  /// Returns how much later than its end, `end`, what the action passes on to its neighbour leaves.
  std::int64_t waited(std::int32_t id, std::int64_t end) const {
    return graph_.channels == 0 ? 0 : left_[static_cast<std::size_t>(id)] - end;
  }

 private:
  const OrderGraph& graph_;
  std::vector<std::int64_t> free_at_;  ///< [channel]
  std::vector<std::int64_t> left_;     ///< [action] when its message leaves; its end where it has none
};

}}  // namespace plumb::schedules
