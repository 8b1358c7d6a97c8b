#pragma once
// The durations of a schedule's actions, as far as making an order and bounding its time need to know them.

#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Times of the messages between each stage and the next one of its lane, by direction.
struct HopTimes {
  std::vector<std::int64_t> activation;  ///< [stage] to the next stage
  std::vector<std::int64_t> gradient;    ///< [stage] from the next stage back

  friend bool operator==(const HopTimes&, const HopTimes&) = default;
};

/// Returns times that are the same in both directions.
HopTimes both_ways(const std::vector<std::int64_t>& times);

/// Costs of each stage, in one unit of the caller's choice.
struct OrderCosts {
  std::vector<std::int64_t> forward;      ///< [stage]
  std::vector<std::int64_t> input_grad;   ///< [stage]
  std::vector<std::int64_t> weight_grad;  ///< [stage]; a whole backward takes both
  HopTimes hop;  ///< from an end to the earliest start of the neighbour, where the two lie on different ranks
  /// The part of the hop for which a message has its link to itself: the next one waits. Empty: any number of messages
  /// are under way at once.
  HopTimes hop_busy;

  /// True if messages have their links to themselves for a while.
  bool has_busy_links() const { return !hop_busy.activation.empty(); }
};

/// Costs that are equal on every stage.
struct EqualCosts {
  std::int64_t forward = 1;
  std::int64_t input_grad = 1;
  std::int64_t weight_grad = 0;
  std::int64_t hop = 0;
  std::int64_t hop_busy = 0;  ///< of the hop
};

/// Returns the same costs for every one of the `stages`.
OrderCosts equal_costs(const EqualCosts& costs, int stages);

/// Returns the table's costs in picoseconds for the stages of a schedule. With `whole_backwards` those of a
/// backward count as input gradients alone. A hop takes the time of a message, for which it has the link of its
/// direction to itself, and its latency.
OrderCosts order_costs(const CostTable& table, const std::vector<StagePlace>& stages, bool whole_backwards = false);

}}  // namespace plumb::schedules
