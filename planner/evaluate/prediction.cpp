#include "planner/evaluate/prediction.h"

#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {

Seconds step_time(const StepSums& step) {
  return to_seconds(step.makespan);
}

nlohmann::ordered_json to_json(const Prediction& prediction) {
  const auto& [step, rates] = prediction;
  return {{"step_time_s", step_time(step).count()},
          {"makespan_s", step_time(step).count()},
          {"bubble_ratio", step.bubble_ratio},
          {"span_bubble_ratio", step.span_bubble_ratio},
          {"samples_per_s", rates.samples_per_second},
          {"tokens_per_s",
           rates.tokens_per_second > 0 ? nlohmann::ordered_json(rates.tokens_per_second) : nlohmann::ordered_json()},
          {"mfu", rates.mfu_ratio},
          {"peak_memory_bytes", step.peak_memory_bytes},
          {"peak_activations", step.peak_activations},
          {"critical_path", nullptr},
          {"ranks", nullptr}};
}

Prediction prediction_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  Prediction prediction;
  auto& [step, rates] = prediction;
  step.makespan = to_sim_time(Seconds{object.positive_number("step_time_s")});
  object.positive_number("makespan_s");
  step.bubble_ratio = object.non_negative_number("bubble_ratio");
  step.span_bubble_ratio = object.non_negative_number("span_bubble_ratio");
  if (object.has("samples_per_s")) rates.samples_per_second = object.positive_number("samples_per_s");
  if (object.has("tokens_per_s")) rates.tokens_per_second = object.positive_number("tokens_per_s");
  rates.mfu_ratio = object.positive_number("mfu");
  step.peak_memory_bytes = object.integers("peak_memory_bytes");
  for (const std::int64_t chunks : object.integers("peak_activations"))
    step.peak_activations.push_back(static_cast<int>(chunks));
  for (const std::string_view key : {"critical_path", "ranks"}) {
    if (object.has(key)) object.fail(key, "a plan keeps no timeline: set it to null, and see `plumb simulate` for it");
  }
  object.finish();
  return prediction;
}

}}  // namespace plumb::planner
