#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/budget/checkpoint_size.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/budget_input.h"
#include "tools/io/console.h"
#include "tools/reports/budget_report.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

/// Share of its time in which a training must come forward to be told.
constexpr double kLeastGoodput = 0.01;

Resilience resilience_of(const PlannedStep& planned, const BudgetAnswer& answer, double checkpoint_minutes) {
  constexpr double kMinute = 60;
  ResilienceQuestion question{.devices = planned.step.devices,
                              .nodes = planned.step.nodes,
                              .checkpoint_bytes = checkpoint_bytes(planned.plan.model, planned.plan.training),
                              .run = answer.run};
  if (checkpoint_minutes > 0) question.interval = Seconds{checkpoint_minutes * kMinute};
  return resilience(answer.reliability, question);
}

}  // namespace

int budget_verb(const BudgetArguments& arguments) {
  BudgetAnswer answer{.limits = limits_input(arguments),
                      .reliability = reliability_input(arguments),
                      .run = {.seed = arguments.seed},
                      .weak = arguments.weak};
  PlannedSteps planned = planned_steps(arguments);
  if (planned.steps.empty()) {
    print_note("plumb: " + planned.infeasible);
    return kInfeasible;
  }
  double goodput = 0;
  for (PlannedStep& step : planned.steps) {
    const Resilience resilience = resilience_of(step, answer, arguments.checkpoint_minutes);
    goodput = std::max(goodput, resilience.goodput);
    if (resilience.goodput < kLeastGoodput) continue;
    answer.cases.push_back({.step = step.step, .resilience = resilience});
    answer.planned.push_back(std::move(step));
  }
  if (answer.cases.empty()) {
    print_note(
        fmt::format("plumb: interruptions let the training come forward in {:.2g} % of its time at most: give "
                    "a longer --mtbf, a shorter --restart or faster --storage",
                    100 * goodput));
    return kInfeasible;
  }
  answer.rows = budget_rows(answer.cases, answer.limits);
  arguments.json ? print_answer(json_answer(budget_json(answer))) : print_text(budget_text(answer));
  const std::string beyond = beyond_limits(answer);
  if (beyond.empty()) return kDone;
  print_note("plumb: " + beyond);
  return kInfeasible;
}

}}  // namespace plumb::tools
