#pragma once
// The promise of a plan, in the terms of `plumb simulate --json`: the sums of its simulation, and the rates that
// follow.

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/evaluate/error_bar.h"
#include "schedules/time.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace planner {

/// The rates at which a training goes with steps of that time.
struct StepRates {
  double samples_per_second = 0;  ///< sequences, images
  double tokens_per_second = 0;   ///< 0 where samples are no sequences
  double mfu_ratio = 0;           ///< price/layer/model_flops.h

  friend bool operator==(const StepRates&, const StepRates&) = default;
};

struct Prediction {
  StepSums step;
  StepRates rates;
  std::optional<PredictionIntervals> intervals;  ///< of the step's time and of the fullest rank's memory

  friend bool operator==(const Prediction&, const Prediction&) = default;
};

Seconds step_time(const StepSums& step);

/// {"step_time_s", "makespan_s", "bubble_ratio", "span_bubble_ratio", "samples_per_s", "tokens_per_s", "mfu",
///  "peak_memory_bytes", "peak_activations", "step_time_interval_s", "peak_memory_interval_bytes" (both [LOW, HIGH], or
///  null), "critical_path", "ranks"}; the last two are null, as they need a timeline.
nlohmann::ordered_json to_json(const Prediction& prediction);
Prediction prediction_from_json(const nlohmann::json& json, const std::string& place);

}}  // namespace plumb::planner
