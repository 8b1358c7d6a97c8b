#pragma once
// Times the actions of an order in which only F, I and B are ordered and the weight gradients float: a rank runs them
// where it would wait, or where a forward needs their memory, and the rest at its end. The order is complete once this
// is done.

#include <cstdint>
#include <vector>

#include "schedules/synthesis/message_times.h"
#include "schedules/synthesis/order_graph.h"

namespace plumb { inline namespace schedules {

/// Says how a rank fills its gaps.
struct GapRule {
  double least_gap_ratio = 1;  ///< a weight gradient runs in a gap that lasts at least this share of it
};

class FloatingOrder {
 public:
  static constexpr std::int64_t kImpossible = -1;

  explicit FloatingOrder(const OrderGraph& graph);

  /// Returns the graph's own order without its weight gradients.
  RankOrders without_weight_grads() const;

  /// Times F, I and B in this order, and the weight gradients with them, by `gaps` [rank]. Returns the time
  /// of the graph's objective, or kImpossible if the ranks wait for each other or a rank has no memory for a
  /// forward.
  std::int64_t time(const RankOrders& kept, const std::vector<GapRule>& gaps);

  /// These return, of the times that time() found last, that of each rank, and the ordered actions that led
  /// to the end of the last one of `rank`, the last first.
  const std::vector<std::int64_t>& rank_times() const { return rank_times_; }
  std::vector<std::int32_t> path_to_end(const RankOrders& kept, int rank) const;

  /// Returns the complete order that time() times.
  RankOrders complete(const RankOrders& kept, const std::vector<GapRule>& gaps);

 private:
  struct RankState {
    std::int64_t now = 0;
    std::int64_t start = 0;
    std::size_t position = 0;
    std::int64_t held_bytes = 0;
    std::vector<std::int32_t> pending;  ///< weight gradients whose I has run, oldest first
    std::size_t next_pending = 0;
    bool is_runnable = true;
  };

  bool has_pending(const RankState& rank) const { return rank.next_pending < rank.pending.size(); }
  void run_weight_grad(int r);
  bool has_room(int r, std::int64_t bytes) const {
    return graph_.max_bytes.empty() || states_[r].held_bytes + bytes <= graph_.max_bytes[r];
  }
  bool run_next(int r, const RankOrders& kept, const GapRule& gap);

  const OrderGraph& graph_;
  std::vector<std::int32_t> weight_grad_of_;  ///< [action] for an I, its W; for others kNone
  std::vector<RankState> states_;
  std::vector<std::int64_t> ends_;
  std::vector<std::int32_t> causes_;
  MessageTimes messages_;
  std::vector<std::int64_t> rank_times_;
  RankOrders* completed_ = nullptr;  ///< the order that complete() collects
};

}}  // namespace plumb::schedules
