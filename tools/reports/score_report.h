#pragma once
// The score as a table for people, and as JSON for programs.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/score/fit.h"
#include "planner/score/score.h"

namespace plumb { inline namespace tools {

/// Returns a line for each source and quantity (rows, scored, mean, median, worst, bias), then the corrections, the
/// assumptions, the reasons why rows were skipped, the fitted constants, and the `worst` rows of each source.
std::string score_text(const std::vector<SourceScore>& scores, const std::optional<FitResult>& fit, int worst);

/// Returns {"sources": [{"file", "source", "rows", "scored", "skipped": [{"id", "reason"}], "step_time": {"count",
/// "mape_pct", "median_pct", "max_pct", "bias_pct"} or null, "memory", "layer_time", "step_time_uncorrected",
/// "corrections", "assumptions", "rank_correlation", "top1_regret_pct"}], "rows": [{"file", "id", "quantity",
/// "predicted", "measured", "error_pct", "uncorrected_error_pct"}], "fit": {"constants": [{"path", "preset",
/// "fitted"}], "zero_seen", "zero_unseen", "fitted_seen", "fitted_unseen"} or null}.
nlohmann::ordered_json score_json(const std::vector<SourceScore>& scores, const std::optional<FitResult>& fit);

/// Returns at most `count` of the scored quantities, in descending order of their errors.
std::vector<ScoredQuantity> furthest_off(const SourceScore& score, std::size_t count);

/// Returns the reasons why rows were skipped with their counts, the most frequent first.
std::vector<std::pair<std::string, int>> skip_reasons(const SourceScore& score);

}}  // namespace plumb::tools
