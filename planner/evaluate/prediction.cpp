#include "planner/evaluate/prediction.h"

#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {

namespace {

PredictionInterval interval_from(StrictObject& object, std::string_view key) {
  const nlohmann::json& value = object.raw(key);
  if (!value.is_array() || value.size() != 2 || !value[0].is_number() || !value[1].is_number())
    object.fail(key, "give the interval's ends: [LOW, HIGH]");
  return {.low = value[0], .high = value[1]};
}

}  // namespace

Seconds step_time(const StepSums& step) {
  return to_seconds(step.makespan);
}

nlohmann::ordered_json to_json(const Prediction& prediction) {
  const StepSums& step = prediction.step;
  const StepRates& rates = prediction.rates;
  const auto interval = [&](PredictionInterval PredictionIntervals::*member) {
    if (!prediction.intervals) return nlohmann::ordered_json();
    const PredictionInterval& one = (*prediction.intervals).*member;
    return nlohmann::ordered_json{one.low, one.high};
  };
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
          {"step_time_interval_s", interval(&PredictionIntervals::step_time)},
          {"peak_memory_interval_bytes", interval(&PredictionIntervals::memory)},
          {"critical_path", nullptr},
          {"ranks", nullptr}};
}

Prediction prediction_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  Prediction prediction;
  auto& [step, rates, intervals] = prediction;
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
  const bool has_time = object.has("step_time_interval_s"), has_memory = object.has("peak_memory_interval_bytes");
  if (has_time != has_memory) {
    object.fail(has_time ? "peak_memory_interval_bytes" : "step_time_interval_s", "both intervals go together: add it");
  }
  if (has_time) {
    intervals = PredictionIntervals{.step_time = interval_from(object, "step_time_interval_s"),
                                    .memory = interval_from(object, "peak_memory_interval_bytes")};
  }
  object.finish();
  return prediction;
}

}}  // namespace plumb::planner
