#include "planner/budget/budget_rows.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

/// Returns a case of steps of a million tokens.
BudgetCase steps_of(double seconds, int devices, double usd) {
  BudgetCase one{.step = {.devices = devices, .nodes = 1, .step = Seconds{seconds}, .tokens = 1e6}};
  if (usd > 0) one.step.operation.usd_per_device_hour = usd;
  one.resilience.goodput = 1;
  return one;
}

std::vector<std::size_t> order_of(const std::vector<BudgetRow>& rows) {
  std::vector<std::size_t> order;
  for (const BudgetRow& row : rows) order.push_back(row.of);
  return order;
}

}  // namespace

TEST_CASE("the cheapest of those within the limits comes first") {
  // 864 steps in a day at 100 s: 0, 1 and 2 take 10, 6 and 4 days for 1e10 tokens.
  const std::vector<BudgetCase> cases{steps_of(86.4, 8, 1), steps_of(51.84, 16, 1), steps_of(34.56, 32, 1)};
  const std::vector<BudgetRow> rows = budget_rows(cases, {.tokens = 1e10, .days = 7});
  CHECK(order_of(rows) == std::vector<std::size_t>{1, 2, 0});
  CHECK(rows[1].within);
  CHECK(!rows[2].within);
  CHECK(rows[0].bill.days == doctest::Approx(6));
}

TEST_CASE("where none is within the limits the nearest comes first, though others are cheaper") {
  const std::vector<BudgetCase> cases{steps_of(86.4, 8, 1), steps_of(51.84, 16, 1), steps_of(34.56, 32, 1)};
  const std::vector<BudgetRow> rows = budget_rows(cases, {.tokens = 1e10, .days = 2});
  CHECK(order_of(rows) == std::vector<std::size_t>{2, 1, 0});
  CHECK(rows[0].bill.usd.value_or(0) > rows[2].bill.usd.value_or(1e9));
}

TEST_CASE("without a price device-hours count, and with open tokens the most tokens") {
  const std::vector<BudgetCase> cases{steps_of(50, 8, 5), steps_of(20, 16, 0), steps_of(10, 64, 0)};
  CHECK(order_of(budget_rows(cases, {.tokens = 1e10})) == std::vector<std::size_t>{1, 0, 2});
  CHECK(order_of(budget_rows(cases, {.days = 7})) == std::vector<std::size_t>{2, 1, 0});
}

}  // namespace plumb::test
