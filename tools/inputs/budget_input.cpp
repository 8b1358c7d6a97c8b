#include "tools/inputs/budget_input.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/search/evaluate_plan.h"
#include "schedules/units.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/plan_input.h"
#include "tools/inputs/presets.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

constexpr const char* kNoFailures = "none";

ReliabilitySpec named_reliability(const std::string& name) {
  if (names_file(name)) return parse_reliability(read_text_file(name), name);
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.kind != Preset::Kind::kReliability) continue;
    if (preset.name == name || name == kNoFailures) return parse_reliability(preset.text, std::string(preset.name));
    names.emplace_back(preset.name);
  }
  throw UsageError(fmt::format("--failures {}: give {}, {} or a file", name, fmt::join(names, ", "), kNoFailures));
}

/// Returns the numbers of devices that are tried where none are listed: divisors of a node, once and three times the
/// powers of two of nodes, and the whole cluster.
std::vector<int> usual_counts(const ClusterSpec& cluster) {
  std::vector<int> counts{cluster.devices};
  for (const int devices : device_counts(cluster)) {
    const int nodes = devices / cluster.devices_per_node;
    const int odd = nodes % 3 == 0 ? nodes / 3 : nodes;
    if ((odd & (odd - 1)) == 0) counts.push_back(devices);
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

/// Returns the arguments that ask about so many devices alone.
BudgetArguments of_devices(BudgetArguments arguments, int devices, int fewest) {
  arguments.aim.devices = std::to_string(devices);
  if (!arguments.weak) return arguments;
  const std::int64_t batches = arguments.question.global_batch * devices;
  if (batches % fewest != 0)
    throw UsageError(fmt::format("--weak: {} devices would have {:.5g} sequences a step: list multiples of {} devices",
                                 devices, static_cast<double>(batches) / fewest, fewest));
  arguments.question.global_batch = batches / fewest;
  return arguments;
}

/// Returns the step of a plan that the user has.
PlannedSteps step_of_plan(const BudgetArguments& arguments) {
  Plan plan = plan_input(arguments.plan);
  plan.cluster = with_operation(plan.cluster, arguments.aim);
  Pricing pricing(plan.model, plan.cluster, plan.training);
  const Evaluation evaluation = evaluate(pricing, plan, std::nullopt, {.network = NetworkOptions{}});
  if (!evaluation.exists) return {.infeasible = evaluation.infeasible};
  return {.steps = {{.plan = plan, .step = budgeted_step(pricing, evaluation)}}};
}

}  // namespace

ReliabilitySpec reliability_input(const BudgetArguments& arguments) {
  ReliabilitySpec spec = named_reliability(arguments.failures);
  if (arguments.failures == kNoFailures) {
    spec.components.clear();
    spec.name = kNoFailures;
    spec.source = "--failures none";
  }
  if (arguments.mtbf_hours > 0) {
    spec.components = one_component(arguments.mtbf_hours);
    spec.name = "given";
    spec.source = "--mtbf";
  }
  const auto replace = [](SourcedFigure& figure, double given, double unit, const char* option) {
    if (given > 0) figure = {.value = given * unit, .source = option};
  };
  constexpr double kMinute = 60, kHour = 3600;
  replace(spec.restart_seconds, arguments.restart_minutes, kMinute, "--restart");
  replace(spec.repair_seconds, arguments.repair_hours, kHour, "--repair");
  replace(spec.storage_bytes_per_second_per_node, arguments.storage_gb_per_s, kGiga, "--storage");
  return spec;
}

BudgetLimits limits_input(const BudgetArguments& arguments) {
  const auto given = [](double value) { return value > 0 ? std::optional(value) : std::nullopt; };
  return {.tokens = given(arguments.aim.tokens),
          .days = given(arguments.aim.deadline_days),
          .usd = given(arguments.money_usd)};
}

PlannedSteps planned_steps(const BudgetArguments& arguments) {
  if (arguments.question.cluster.empty()) return step_of_plan(arguments);
  PlannedSteps planned;
  for (const std::string& cluster : listed(arguments.question.cluster)) {
    BudgetArguments of_cluster = arguments;
    of_cluster.question.cluster = cluster;
    of_cluster.question.model = arguments.plan;
    const ClusterSpec most = cluster_input(cluster);
    const std::vector<int> counts =
        arguments.aim.devices.empty() ? usual_counts(most) : device_counts_of(arguments.aim, most);
    for (const int devices : counts) {
      const BudgetArguments one = of_devices(of_cluster, devices, counts.front());
      AimArguments aim = one.aim;  // the deadline is not the search's
      const PlannedSettings found = plan_settings(one.question, aim, {.keep = 1});
      planned.infeasible = found.infeasible;
      if (found.rows.empty()) continue;
      const PlannedQuestion& setting = found.settings[found.rows.front().setting];
      const Evaluation& best = setting.search.ranked[found.rows.front().row];
      planned.steps.push_back({.plan = plan_of(setting, best), .step = budgeted_step(setting.pricing, best)});
    }
  }
  return planned;
}

}}  // namespace plumb::tools
