#include "planner/budget/training_budget.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

/// Steps of 8.64 s, 10,000 a day, of a million tokens on 100 devices.
BudgetedStep ten_thousand_a_day() {
  return {.devices = 100,
          .nodes = 13,
          .step = Seconds{8.64},
          .busy = Seconds{8.64},
          .tokens = 1e6,
          .operation = {.usd_per_device_hour = 2, .idle_watts = 100, .busy_watts = 500, .pue = 1.5}};
}

}  // namespace

TEST_CASE("tokens give days, device-hours, money and energy") {
  const Bill bill = *bill_of(ten_thousand_a_day(), 1, {.tokens = 1e11});
  CHECK(bill.days == doctest::Approx(10));
  CHECK(bill.device_hours == doctest::Approx(24'000));
  CHECK(*bill.usd == doctest::Approx(48'000));
  CHECK(*bill.kwh == doctest::Approx(24'000 * 0.5 * 1.5));
}

TEST_CASE("lost time is paid, too") {
  const Bill all = *bill_of(ten_thousand_a_day(), 1, {.tokens = 1e11});
  const Bill half = *bill_of(ten_thousand_a_day(), 0.5, {.tokens = 1e11});
  CHECK(half.days == doctest::Approx(2 * all.days));
  CHECK(*half.usd == doctest::Approx(2 * *all.usd));
  CHECK(*half.kwh == doctest::Approx(2 * *all.kwh));
}

TEST_CASE("days or money give the tokens that the tighter of both allows") {
  const BudgetedStep step = ten_thousand_a_day();
  CHECK(bill_of(step, 0.9, {.days = 10})->tokens == doctest::Approx(0.9e11));
  CHECK(bill_of(step, 0.9, {.usd = 24'000})->tokens == doctest::Approx(0.45e11));
  const Bill both = *bill_of(step, 0.9, {.days = 10, .usd = 24'000});
  CHECK(both.tokens == doctest::Approx(0.45e11));
  CHECK(both.days == doctest::Approx(5));
  CHECK(!bill_of(step, 0.9, {}));
}

TEST_CASE("the bill of an answer asks for what was given") {
  const BudgetedStep step = ten_thousand_a_day();
  const Bill of_days = *bill_of(step, 0.8, {.days = 7});
  const Bill again = *bill_of(step, 0.8, {.tokens = of_days.tokens});
  CHECK(again.days == doctest::Approx(7));
  CHECK(is_within(again, {.days = 7}));
  CHECK(!is_within(again, {.days = 6.99}));
  CHECK(!is_within(again, {.usd = *again.usd * 0.99}));
}

TEST_CASE("a price that is missing is no price of nothing") {
  BudgetedStep step = ten_thousand_a_day();
  step.operation = {};
  const Bill bill = *bill_of(step, 1, {.tokens = 1e11});
  CHECK(!bill.usd);
  CHECK(!bill.kwh);
  check_refused<SpecError>([&] { bill_of(step, 1, {.usd = 1000}); }, "money", "has no price");
}

TEST_CASE("the facts of a step are those of the evaluated layout") {
  Pricing pricing(preset_model("llama-3-8b"), preset_cluster("h100:16"),
                  {.global_batch = 128, .sequence = 8192, .precision = Precision::kBf16});
  const Evaluation evaluation = evaluate(pricing, {.data = 8, .tensor = 2});
  const BudgetedStep step = budgeted_step(pricing, evaluation);
  CHECK(step.devices == 16);
  CHECK(step.nodes == 2);
  CHECK(step.tokens == 128 * 8192);
  CHECK(step.step == step_time(evaluation.simulation));
  CHECK(step.busy <= step.step);
}

}  // namespace plumb::test
