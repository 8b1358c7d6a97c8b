#include "tools/reports/budget_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/budget/scaling_knee.h"
#include "planner/spec/short_layout.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/or_null.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

constexpr double kSecondsPerHour = 3600;

std::string usd_text(const std::optional<double>& usd) {
  return usd ? fmt::format("{:.4g} $", *usd) : "-";
}

std::string energy_text(const std::optional<double>& kwh) {
  constexpr double kKwhPerMwh = 1000;
  return kwh ? fmt::format("{:.4g} MWh", *kwh / kKwhPerMwh) : "-";
}

std::string span_text(Seconds span) {
  constexpr double kMinute = 60;
  if (std::isinf(span.count())) return "never";
  if (span.count() >= 2 * kSecondsPerHour) return fmt::format("{:.3g} h", span.count() / kSecondsPerHour);
  return span.count() >= 2 * kMinute ? fmt::format("{:.3g} min", span.count() / kMinute)
                                     : fmt::format("{:.3g} s", span.count());
}

/// The points of a cluster's cases, in their order.
struct ClusterScaling {
  std::string cluster;
  std::vector<std::size_t> cases;
  std::vector<ScalingPoint> points;
};

std::vector<ClusterScaling> scalings_of(const BudgetAnswer& answer) {
  std::vector<ClusterScaling> scalings;
  for (std::size_t of = 0; of < answer.cases.size(); ++of) {
    const auto& [step, resilience] = answer.cases[of];
    const std::string& cluster = answer.planned[of].plan.cluster.name;
    if (scalings.empty() || scalings.back().cluster != cluster) scalings.push_back({.cluster = cluster});
    scalings.back().cases.push_back(of);
    scalings.back().points.push_back(
        {.devices = static_cast<double>(step.devices), .rate = step.tokens / step.step.count() * resilience.goodput});
  }
  return scalings;
}

/// Returns the useful tokens of a device's hour over those of the cluster's best case.
double efficiency_of(const std::vector<ClusterScaling>& scalings, std::size_t of) {
  for (const ClusterScaling& scaling : scalings) {
    const auto at = std::ranges::find(scaling.cases, of);
    if (at == scaling.cases.end()) continue;
    const auto by_device = [](const ScalingPoint& point) { return point.rate / point.devices; };
    const ScalingPoint& own = scaling.points[static_cast<std::size_t>(at - scaling.cases.begin())];
    return by_device(own) / by_device(*std::ranges::max_element(scaling.points, {}, by_device));
  }
  return 1;
}

TextTable table_of(const BudgetAnswer& answer) {
  const std::vector<ClusterScaling> scalings = scalings_of(answer);
  TextTable table{.head = {"cluster", "devices", "layout", "step time", "goodput", "tokens", "days", "device-hours",
                           "money", "energy", "scaling", "within"}};
  for (const BudgetRow& row : answer.rows) {
    const auto& [step, resilience] = answer.cases[row.of];
    const Plan& plan = answer.planned[row.of].plan;
    Layout layout = plan.layout;
    layout.split.clear();
    table.rows.push_back({plan.cluster.name, std::to_string(step.devices), short_text(layout),
                          duration_text(step.step.count()), fmt::format("{:.1f} %", 100 * resilience.goodput),
                          fmt::format("{:.4g}", row.bill.tokens), fmt::format("{:.4g}", row.bill.days),
                          fmt::format("{:.4g}", row.bill.device_hours), usd_text(row.bill.usd),
                          energy_text(row.bill.kwh), fmt::format("{:.1f} %", 100 * efficiency_of(scalings, row.of)),
                          row.within ? "yes" : "no"});
  }
  return table;
}

std::string knees_text(const BudgetAnswer& answer) {
  std::string text;
  for (const ClusterScaling& scaling : scalings_of(answer)) {
    if (scaling.points.size() < 2) continue;
    const std::optional<std::size_t> knee = scaling_knee(scaling.points);
    const char* kind = answer.weak ? "weak" : "strong";
    text += knee ? fmt::format(
                       "knee of {} scaling on {}: {:.0f} devices; behind it 1 % more devices train less than {} % more "
                       "tokens a day\n",
                       kind, scaling.cluster, scaling.points[*knee].devices, kKneeElasticity)
                 : fmt::format("no knee of {} scaling on {} up to {:.0f} devices\n", kind, scaling.cluster,
                               scaling.points.back().devices);
  }
  return text;
}

/// Returns the days of the row at both ends of the step's interval, in which four of five runs lie.
std::pair<double, double> days_interval(const BudgetAnswer& answer, const BudgetRow& row) {
  const Plan& plan = answer.planned[row.of].plan;
  const auto [low, high] = intervals_of(plan, plan.prediction->step).step_time;
  const double per_second = row.bill.days / answer.cases[row.of].step.step.count();
  return {low * per_second, high * per_second};
}

std::string interruptions_text(const BudgetAnswer& answer, const BudgetRow& row) {
  const Resilience& r = answer.cases[row.of].resilience;
  const Interruptions& interruptions = r.interruptions;
  if (std::isinf(interruptions.mean_between.count())) return "interruptions: none\n";
  constexpr double kHoursPerDay = 24;
  std::string text = fmt::format("interruptions: one in {}, {:.4g} in all;", span_text(interruptions.mean_between),
                                 row.bill.days * kHoursPerDay * kSecondsPerHour / interruptions.mean_between.count());
  std::vector<FailingComponent> components = answer.reliability.components;
  std::ranges::stable_sort(components, std::greater{}, &FailingComponent::per_device_hour);
  constexpr std::size_t kMostNamed = 5;
  double all = 0;
  for (const FailingComponent& component : components) all += component.per_device_hour;
  for (std::size_t i = 0; i < std::min(kMostNamed, components.size()); ++i) {
    text +=
        fmt::format("{} {} {:.0f} %", i == 0 ? "" : ",", components[i].name, 100 * components[i].per_device_hour / all);
  }
  text += fmt::format(
      "\ncheckpoints: of {}, written in {} while the training waits, one behind every {} of work (Young {}, Daly {})\n",
      bytes_text(r.checkpoint_bytes), span_text(interruptions.checkpoint), span_text(r.interval),
      span_text(young_interval(interruptions)), span_text(daly_interval(interruptions)));
  return text + fmt::format(
                    "goodput: {:.2f} % by the formula; {:.2f} % +- {:.1g} % in {} simulated interruptions (seed {})\n"
                    "spare nodes: {}, with which none is missing in {:.0f} % of the time\n",
                    100 * r.goodput, 100 * r.simulated.goodput, 100 * r.simulated.standard_error,
                    answer.run.interruptions, answer.run.seed, r.spare_nodes, 100 * kSpareProbability);
}

std::string detail_text(const BudgetAnswer& answer, const BudgetRow& row) {
  const BudgetedStep& step = answer.cases[row.of].step;
  const Plan& plan = answer.planned[row.of].plan;
  const auto [low, high] = days_interval(answer, row);
  std::string text = fmt::format("the {}: {} devices of {}, {:.4g} days ({:.3g} to {:.3g} in four of five runs), {}\n",
                                 row.within ? "best" : "nearest", step.devices, plan.cluster.name, row.bill.days, low,
                                 high, stack_text(plan.training));
  return text + interruptions_text(answer, row);
}

/// Returns each assumption behind the figures of a row, a sentence with its source.
std::vector<std::string> assumptions_of(const BudgetAnswer& answer, const BudgetRow& row) {
  const OperatingSpec& operation = answer.cases[row.of].step.operation;
  const ReliabilitySpec& spec = answer.reliability;
  std::vector<std::string> list{
      fmt::format("interruptions come independently, at constant rates by device: {}", spec.source),
      fmt::format("a restart takes {}: {}", span_text(Seconds{spec.restart_seconds.value}),
                  spec.restart_seconds.source),
      fmt::format("a node is repaired in {}: {}", span_text(Seconds{spec.repair_seconds.value}),
                  spec.repair_seconds.source),
      fmt::format("a node writes {:.3g} GB/s of a checkpoint, which has the weights and the optimizer's state: {}",
                  spec.storage_bytes_per_second_per_node.value / 1e9, spec.storage_bytes_per_second_per_node.source),
      "lost time is paid and draws power like the rest; spares are not in device-hours, money and energy"};
  list.push_back(
      operation.usd_per_device_hour
          ? fmt::format("a device's hour costs {:.4g} $ (--price, or the cluster's: `plumb clusters` has its "
                        "source and date)",
                        *operation.usd_per_device_hour)
          : "the cluster has no price, so that there is no money: give --price");
  list.push_back(operation.busy_watts
                     ? fmt::format("a device draws {:.4g} W idle and {:.4g} W busy, linear in the time "
                                   "that it computes, and the site {:.3g} times that (--power, --pue)",
                                   *operation.idle_watts, *operation.busy_watts, operation.pue)
                     : "the cluster has no powers, so that there is no energy: give --power");
  return list;
}

std::string given_text(const BudgetLimits& limits) {
  std::vector<std::string> given;
  if (limits.tokens) given.push_back(fmt::format("{:.4g} tokens", *limits.tokens));
  if (limits.days) given.push_back(fmt::format("{:.4g} days", *limits.days));
  if (limits.usd) given.push_back(fmt::format("{:.4g} $", *limits.usd));
  return fmt::format("{}", fmt::join(given, ", "));
}

ordered_json seconds_json(Seconds span) {
  return std::isinf(span.count()) ? ordered_json(nullptr) : ordered_json(span.count());
}

ordered_json row_json(const BudgetAnswer& answer, const BudgetRow& row, const std::vector<ClusterScaling>& scalings) {
  const auto& [step, r] = answer.cases[row.of];
  const Plan& plan = answer.planned[row.of].plan;
  const auto [low, high] = days_interval(answer, row);
  return {{"cluster", plan.cluster.name},
          {"devices", step.devices},
          {"global_batch", plan.training.global_batch},
          {"layout", to_json(plan.layout)},
          {"step_time_s", step.step.count()},
          {"tokens", row.bill.tokens},
          {"days", row.bill.days},
          {"days_interval", {low, high}},
          {"device_hours", row.bill.device_hours},
          {"usd", or_null(row.bill.usd)},
          {"energy_kwh", or_null(row.bill.kwh)},
          {"within", row.within},
          {"scaling_efficiency", efficiency_of(scalings, row.of)},
          {"goodput", r.goodput},
          {"simulated_goodput", r.simulated.goodput},
          {"simulated_goodput_error", r.simulated.standard_error},
          {"mean_time_between_interruptions_s", seconds_json(r.interruptions.mean_between)},
          {"checkpoint_bytes", r.checkpoint_bytes},
          {"checkpoint_s", r.interruptions.checkpoint.count()},
          {"checkpoint_interval_s", seconds_json(r.interval)},
          {"spare_nodes", r.spare_nodes}};
}

}  // namespace

std::string budget_text(const BudgetAnswer& answer) {
  const BudgetRow& best = answer.rows.front();
  const Plan& plan = answer.planned[best.of].plan;
  std::string text =
      fmt::format("{}, {} given: steps of {} sequences of {} tokens{}\n\n{}\n", plan.model.name,
                  given_text(answer.limits), answer.weak ? "ever more" : std::to_string(plan.training.global_batch),
                  plan.training.sequence, answer.weak ? " as devices are added" : "", to_text(table_of(answer)));
  if (const std::string knees = knees_text(answer); !knees.empty()) text += knees + "\n";
  text += detail_text(answer, best) + "\nassumed:\n";
  for (const std::string& assumption : assumptions_of(answer, best)) text += "  " + assumption + "\n";
  return text;
}

ordered_json budget_json(const BudgetAnswer& answer) {
  const std::vector<ClusterScaling> scalings = scalings_of(answer);
  ordered_json document{{"given",
                         {{"tokens", or_null(answer.limits.tokens)},
                          {"days", or_null(answer.limits.days)},
                          {"usd", or_null(answer.limits.usd)}}},
                        {"feasible", answer.rows.front().within}};
  document["rows"] = ordered_json::array();
  for (const BudgetRow& row : answer.rows) document["rows"].push_back(row_json(answer, row, scalings));
  document["knees"] = ordered_json::array();
  for (const ClusterScaling& scaling : scalings) {
    const std::optional<std::size_t> knee = scaling_knee(scaling.points);
    document["knees"].push_back({{"cluster", scaling.cluster},
                                 {"devices", knee ? ordered_json(scaling.points[*knee].devices) : ordered_json()}});
  }
  document["assumptions"] = assumptions_of(answer, answer.rows.front());
  return document;
}

std::string beyond_limits(const BudgetAnswer& answer) {
  const BudgetRow& nearest = answer.rows.front();
  if (nearest.within) return {};
  int most = 0;
  for (const BudgetCase& one : answer.cases) most = std::max(most, one.step.devices);
  const BudgetedStep& step = answer.cases[nearest.of].step;
  return fmt::format(
      "no number of devices up to {} trains it within {}: {} devices of {} come nearest, with {:.4g} days and {}: give "
      "more days, money or devices, or a larger batch",
      most, given_text({.days = answer.limits.days, .usd = answer.limits.usd}), step.devices,
      answer.planned[nearest.of].plan.cluster.name, nearest.bill.days, usd_text(nearest.bill.usd));
}

}}  // namespace plumb::tools
