#pragma once
// What the actions of a schedule take, as far as making an order needs to know.

#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"

namespace plumb { inline namespace schedules {

/// Of each stage, in one unit of the caller's choice.
struct OrderCosts {
  std::vector<std::int64_t> forward;      ///< [stage]
  std::vector<std::int64_t> input_grad;   ///< [stage]
  std::vector<std::int64_t> weight_grad;  ///< [stage]; a whole backward takes both
  std::int64_t hop = 0;                   ///< latency between different ranks
};

/// Of any stage.
struct EqualCosts {
  std::int64_t forward = 1;
  std::int64_t input_grad = 1;
  std::int64_t weight_grad = 0;
  std::int64_t hop = 0;
};

/// The same for every one of the `stages`.
OrderCosts equal_costs(const EqualCosts& costs, int stages);

/// What the table says, in picoseconds; with `whole_backwards` they count as input gradients alone.
OrderCosts order_costs(const CostTable& table, bool whole_backwards = false);

}}  // namespace plumb::schedules
