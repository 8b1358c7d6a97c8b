#pragma once
// The durations of a schedule's actions, as far as making an order and bounding its time need to know them.

#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Costs of each stage, in one unit of the caller's choice.
struct OrderCosts {
  std::vector<std::int64_t> forward;      ///< [stage]
  std::vector<std::int64_t> input_grad;   ///< [stage]
  std::vector<std::int64_t> weight_grad;  ///< [stage]; a whole backward takes both
  /// [stage] from its end to the start of the next stage of its lane, and as long for the gradient back,
  /// where the two lie on different ranks.
  std::vector<std::int64_t> hop;
  /// [stage] the part of its hop for which a message has its link to itself: the next one waits. Empty: any number of
  /// messages are under way at once.
  std::vector<std::int64_t> hop_busy;
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
/// backward count as input gradients alone. A hop takes the longer of the two directions: the time of a
/// message, for which it has the link to itself, and its latency.
OrderCosts order_costs(const CostTable& table, const std::vector<StagePlace>& stages, bool whole_backwards = false);

}}  // namespace plumb::schedules
