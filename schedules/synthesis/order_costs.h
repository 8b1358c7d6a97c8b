#pragma once
// The durations of a schedule's actions, as far as making an order needs to know them.

#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"

namespace plumb { inline namespace schedules {

/// Costs of each stage, in one unit of the caller's choice.
struct OrderCosts {
  std::vector<std::int64_t> forward;      ///< [stage]
  std::vector<std::int64_t> input_grad;   ///< [stage]
  std::vector<std::int64_t> weight_grad;  ///< [stage]; a whole backward takes both
  std::int64_t hop = 0;                   ///< latency between different ranks
};

/// Costs that are equal on every stage.
struct EqualCosts {
  std::int64_t forward = 1;
  std::int64_t input_grad = 1;
  std::int64_t weight_grad = 0;
  std::int64_t hop = 0;
};

/// Returns the same costs for every one of the `stages`.
OrderCosts equal_costs(const EqualCosts& costs, int stages);

/// Returns the table's costs in picoseconds; with `whole_backwards` those of a backward count as input gradients alone.
OrderCosts order_costs(const CostTable& table, bool whole_backwards = false);

}}  // namespace plumb::schedules
