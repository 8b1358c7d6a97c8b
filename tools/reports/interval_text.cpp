#include "tools/reports/interval_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/forms/strict_json.h"
#include "tools/inputs/presets.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

const ErrorBars& error_bars() {
  static const ErrorBars kBars = [] {
    const Preset& preset = *std::ranges::find(presets(), Preset::Kind::kErrorBars, &Preset::kind);
    const std::string file = std::string(preset.name) + ".json";
    return error_bars_from_json(parse_json(preset.text, file), file);
  }();
  return kBars;
}

bool is_carried(const StackSpec& stack) {
  return std::ranges::any_of(presets(), [&](const Preset& preset) {
    if (preset.kind != Preset::Kind::kStack || preset.name != stack.name) return false;
    StackSpec carried = parse_stack(preset.text, std::string(preset.name));
    carried.memory_headroom = stack.memory_headroom;  // a search's, and no figure of a prediction
    return carried == stack;
  });
}

std::string_view reason_of(FrameworkKnown known) {
  switch (known) {
    case FrameworkKnown::kNamed:
    case FrameworkKnown::kOwn:
      return "";
    case FrameworkKnown::kAssumed:
      return "; the framework is assumed: name yours by --stack for a narrower interval";
    case FrameworkKnown::kUnknown:
      return "; this framework was never compared with measured runs, so the interval is wide and may still be too "
             "narrow";
  }
  return "";
}

}  // namespace

FrameworkKnown framework_known(const Plan& plan) {
  const TrainingSpec& training = plan.training;
  if (!training.stack) return plan.cluster.samples.empty() ? FrameworkKnown::kUnknown : FrameworkKnown::kOwn;
  if (!training.stack_assumed.empty()) return FrameworkKnown::kAssumed;
  return is_carried(*training.stack) ? FrameworkKnown::kNamed : FrameworkKnown::kUnknown;
}

PredictionIntervals intervals_of(const Plan& plan, const StepSums& predicted) {
  const ErrorTraits traits = error_traits(plan.model, plan.cluster, plan.training, framework_known(plan));
  return intervals_of(error_bars(), traits, step_time(predicted).count(),
                      static_cast<double>(std::ranges::max(predicted.peak_memory_bytes)));
}

std::string interval_text(const Plan& plan, const StepSums& predicted) {
  const PredictionIntervals intervals = intervals_of(plan, predicted);
  return fmt::format("four of five runs lie within {} to {} a step and {} to {} of memory{}",
                     duration_text(intervals.step_time.low), duration_text(intervals.step_time.high),
                     bytes_text(intervals.memory.low), bytes_text(intervals.memory.high),
                     reason_of(framework_known(plan)));
}

nlohmann::ordered_json interval_json(const Plan& plan, const StepSums& predicted) {
  const PredictionIntervals intervals = intervals_of(plan, predicted);
  return {{"step_time_interval_s", {intervals.step_time.low, intervals.step_time.high}},
          {"peak_memory_interval_bytes", {intervals.memory.low, intervals.memory.high}},
          {"framework_known", framework_known_name(framework_known(plan))}};
}

}}  // namespace plumb::tools
