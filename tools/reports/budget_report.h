#pragma once
// The answer of `plumb budget`: a row for each cluster and number of devices, the best one in detail, the knee of each
// cluster, and what was assumed.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/budget/budget_rows.h"
#include "tools/inputs/budget_input.h"

namespace plumb { inline namespace tools {

struct BudgetAnswer {
  BudgetLimits limits;
  ReliabilitySpec reliability;
  GoodputRun run;
  bool weak = false;
  std::vector<PlannedStep> planned;  ///< [case]
  std::vector<BudgetCase> cases;     ///< [case]
  std::vector<BudgetRow> rows;       ///< the best first
};

std::string budget_text(const BudgetAnswer& answer);
nlohmann::ordered_json budget_json(const BudgetAnswer& answer);

/// Returns why no row is within the limits, and the nearest row; empty where one is.
std::string beyond_limits(const BudgetAnswer& answer);

}}  // namespace plumb::tools
