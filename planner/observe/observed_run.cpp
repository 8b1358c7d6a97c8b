#include "planner/observe/observed_run.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace plumb { inline namespace planner {
namespace {

/// Returns the least and the most seconds that a pipeline rank spends on the operations, of the ranks that have some.
std::pair<double, double> predicted_seconds(const Timeline& timeline, const std::vector<Op>& ops) {
  double least = 0, most = 0;
  for (const RankTimeline& rank : timeline.ranks) {
    double sum = 0;
    for (const Span& span : rank.spans) {
      if (std::ranges::find(ops, span.action.op) != ops.end()) sum += to_seconds(span.end - span.start).count();
    }
    if (sum > 0) least = least > 0 ? std::min(least, sum) : sum;
    most = std::max(most, sum);
  }
  return {least, most};
}

}  // namespace

double error_ratio(const PredictedAndMeasured& quantity) {
  return quantity.predicted / quantity.measured - 1;
}

ComparedRun compare_run(const Pricing& pricing, const Evaluation& evaluation, const ObservedRun& run) {
  ComparedRun compared{.step = {step_time(evaluation.simulation).count(), run.step.value}};
  if (run.peak_bytes) {
    const std::int64_t peak = *std::ranges::max_element(evaluation.simulation.peak_memory_bytes);
    compared.memory = {static_cast<double>(peak), static_cast<double>(*run.peak_bytes)};
  }
  for (const ObservedOperations& observed : run.operations) {
    const auto [least, most] = predicted_seconds(evaluation.simulation.timeline, observed.ops);
    if (most > 0)
      compared.parts.push_back(
          {.name = observed.name, .least = {least, observed.least.value}, .most = {most, observed.most.value}});
  }
  if (!run.components.empty()) {
    const TimeComponents predicted = time_components(pricing, evaluation, step_time(evaluation.simulation));
    for (const ObservedComponent& observed : run.components) {
      PredictedAndMeasured both{.measured = observed.seconds};
      for (const TimeComponent component : observed.components)
        both.predicted += predicted[static_cast<std::size_t>(component)].count();
      compared.parts.push_back({.name = observed.name, .least = both, .most = both});
    }
  }
  std::ranges::stable_sort(compared.parts, std::greater{},
                           [](const ComparedPart& of) { return std::abs(of.most.predicted - of.most.measured); });
  return compared;
}

}}  // namespace plumb::planner
