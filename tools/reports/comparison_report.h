#pragma once
// The comparison of a prediction with measured steps, as JSON and as the tables that `plumb validate` prints.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "traces/compare/compare.h"

namespace plumb { inline namespace tools {

/// Returns {"steps", "step_time", "step_time_interval", "fastest_step_s", "slowest_step_s", "bubble_ratio",
/// "span_bubble_ratio", "losses", "ops", "ranks", "causes"}; "losses" is null where nothing was trained.
nlohmann::ordered_json comparison_json(const Comparison& comparison, const std::vector<double>& losses);

/// Returns "B, stage 1", "waiting for inputs" or the like. `timeline` gives the stages' names.
std::string cause_text(const ErrorCause& cause, const Timeline& timeline);

/// Returns tables of the whole comparison. `timeline` gives the stages' names.
std::string to_text(const Comparison& comparison, const Timeline& timeline);

/// Returns the summary: step time, bubble, memory where it was measured, and the losses if there are any.
std::string summary_text(const Comparison& comparison, const std::vector<double>& losses);

}}  // namespace plumb::tools
