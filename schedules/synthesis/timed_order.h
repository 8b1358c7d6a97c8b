#pragma once
// When the actions of an order run, at uniform costs: the inner loop of the searches. Actions are numbers; who needs
// whom is looked up once, and only the order on each rank changes.

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/synthesis/list_scheduler.h"

namespace plumb {

/// [rank] the numbers of its actions, in the order in which they run.
using RankOrders = std::vector<std::vector<std::int32_t>>;

class TimedOrder {
 public:
  static constexpr std::int32_t kNone = -1;
  static constexpr std::int64_t kDeadlock = -1;

  /// Throws ScheduleError if the schedule has other actions than F, B, I and W, slices or pairs.
  TimedOrder(const Schedule& schedule, const ListCosts& costs);

  /// The order of the schedule it was made of.
  const RankOrders& first_order() const { return first_order_; }

  /// Times all actions; returns the longest span of any rank, or kDeadlock.
  std::int64_t span(const RankOrders& orders);

  /// Of the times that span() found last: the actions that make the longest span, the last first. Empty after a
  /// deadlock.
  std::vector<std::int32_t> critical_path(const RankOrders& orders) const;

  const Action& action(std::int32_t id) const { return actions_[id]; }
  int rank(std::int32_t id) const { return ranks_[id]; }
  /// What must run before it on its own rank, or kNone: a backward's forward, a W's I.
  std::int32_t own_input(std::int32_t id) const { return inputs_[id][0].id; }

 private:
  struct Input {
    std::int32_t id = kNone;
    std::int64_t delay = 0;  ///< from its end to the earliest start
  };

  std::vector<Action> actions_;
  std::vector<int> ranks_;
  std::vector<std::int64_t> durations_;
  std::vector<std::array<Input, 2>> inputs_;  ///< the own, then the neighbour's
  std::vector<int> feeds_;                    ///< the other rank that waits for it, or kNone
  RankOrders first_order_;
  // Of the last call of span().
  std::vector<std::int64_t> starts_;
  std::vector<std::int64_t> ends_;
  std::vector<std::int32_t> causes_;
  int longest_rank_ = kNone;
};

}  // namespace plumb
