#include "planner/budget/training_budget.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/search/objective.h"
#include "planner/spec/cluster_sites.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

constexpr double kSecondsPerHour = 3600, kSecondsPerDay = 24 * kSecondsPerHour, kJoulesPerKwh = 3.6e6;

/// Returns the bill of that many steps, interrupted ones included.
Bill bill_of_steps(const BudgetedStep& step, double tokens, double steps) {
  const double seconds = steps * step.step.count();
  Bill bill{
      .tokens = tokens, .days = seconds / kSecondsPerDay, .device_hours = seconds / kSecondsPerHour * step.devices};
  if (step.operation.usd_per_device_hour) bill.usd = step_usd(step.operation, step.devices, step.step) * steps;
  if (step.operation.busy_watts)
    bill.kwh = step_joules(step.operation, step.devices, step.step, step.busy) * steps / kJoulesPerKwh;
  return bill;
}

}  // namespace

BudgetedStep budgeted_step(const Pricing& pricing, const Evaluation& evaluation) {
  if (!has_sequence(pricing.model()))
    throw SpecError(
        fmt::format("a budget counts tokens, and {} trains on none: give a model of sequences", pricing.model().name));
  const ClusterSpec& cluster = pricing.cluster();
  return {.devices = cluster.devices,
          .nodes = node_count(cluster),
          .step = step_time(evaluation.simulation),
          .busy = to_seconds(mean_busy(evaluation.simulation)),
          .tokens = static_cast<double>(tokens_per_step(pricing.training())),
          .operation = mean_operation(cluster)};
}

std::optional<Bill> bill_of(const BudgetedStep& step, double goodput, const BudgetLimits& limits) {
  if (limits.usd && !step.operation.usd_per_device_hour)
    throw SpecError("money is given, and the cluster has no price: give the price of a device's hour, too");
  if (limits.tokens) return bill_of_steps(step, *limits.tokens, *limits.tokens / step.tokens / goodput);
  std::optional<double> steps;
  const auto at_most = [&](double most) { steps = std::min(steps.value_or(most), most); };
  if (limits.days) at_most(*limits.days * kSecondsPerDay / step.step.count());
  if (limits.usd) at_most(*limits.usd / step_usd(step.operation, step.devices, step.step));
  if (!steps) return std::nullopt;
  return bill_of_steps(step, *steps * goodput * step.tokens, *steps);
}

double excess(const Bill& bill, const BudgetLimits& limits) {
  const double days = limits.days ? bill.days / *limits.days : 0;
  const double usd = limits.usd && bill.usd ? *bill.usd / *limits.usd : 0;
  return std::max(days, usd);
}

bool is_within(const Bill& bill, const BudgetLimits& limits) {
  return excess(bill, limits) <= 1 + 1e-9;  // a limit that is met exactly is met
}

}}  // namespace plumb::planner
