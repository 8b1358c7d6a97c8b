#include "planner/budget/budget_rows.h"

#include <algorithm>

namespace plumb { inline namespace planner {

std::vector<BudgetRow> budget_rows(const std::vector<BudgetCase>& cases, const BudgetLimits& limits) {
  std::vector<BudgetRow> rows;
  for (std::size_t of = 0; of < cases.size(); ++of) {
    const Bill bill = *bill_of(cases[of].step, cases[of].resilience.goodput, limits);
    rows.push_back({.of = of, .bill = bill, .within = is_within(bill, limits)});
  }
  const bool priced = std::ranges::all_of(rows, [](const BudgetRow& row) { return row.bill.usd.has_value(); });
  const auto cost = [&](const Bill& bill) {
    if (!limits.tokens) return -bill.tokens;
    return priced ? *bill.usd : bill.device_hours;
  };
  std::ranges::stable_sort(rows, [&](const BudgetRow& a, const BudgetRow& b) {
    if (a.within != b.within) return a.within;
    return a.within ? cost(a.bill) < cost(b.bill) : excess(a.bill, limits) < excess(b.bill, limits);
  });
  return rows;
}

}}  // namespace plumb::planner
