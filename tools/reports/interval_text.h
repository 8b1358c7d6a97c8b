#pragma once
// The intervals of a plan's prediction, as every report says them.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/evaluate/error_bar.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

/// Returns what is known of the framework that a plan names: a stack that Plumb carries is described, and a user's own
/// file is not. Plumb's own executor is known on clusters whose kernels were measured.
FrameworkKnown framework_known(const Plan& plan);

/// Returns the intervals of the plan's step and of its fullest rank, in which four of five measurements lie.
PredictionIntervals intervals_of(const Plan& plan, const StepSums& predicted);

/// Returns one or two sentences: both intervals, and whether the framework is assumed or unknown.
std::string interval_text(const Plan& plan, const StepSums& predicted);

/// {"step_time_interval_s": [low, high], "peak_memory_interval_bytes": [low, high], "framework_known": "named"}
nlohmann::ordered_json interval_json(const Plan& plan, const StepSums& predicted);

}}  // namespace plumb::tools
