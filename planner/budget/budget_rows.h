#pragma once
// The bills of one training on several clusters and numbers of devices, the best first.

#include <cstddef>
#include <vector>

#include "planner/budget/resilience.h"
#include "planner/budget/training_budget.h"

namespace plumb { inline namespace planner {

/// A step on its devices, and what interruptions do to its training.
struct BudgetCase {
  BudgetedStep step;
  Resilience resilience;
};

struct BudgetRow {
  std::size_t of = 0;  ///< index of the case
  Bill bill;
  bool within = false;  ///< it exceeds no limit
};

/// Returns a row for each case: first those within the limits, and of these first the cheapest or, where the tokens are
/// open, those with the most tokens; then the others, the one that exceeds its limits least first. Where a cluster has no
/// price the fewest device-hours count as the cheapest. Of equal rows the first case's comes first. Throws as bill_of(); one of tokens, days and money must be given.
std::vector<BudgetRow> budget_rows(const std::vector<BudgetCase>& cases, const BudgetLimits& limits);

}}  // namespace plumb::planner
