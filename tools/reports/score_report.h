#pragma once
// How a score is told: to people as a table, to programs as JSON.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/score/fit.h"
#include "planner/score/score.h"

namespace plumb { inline namespace tools {

/// A line a source and quantity (rows, scored, mean, median, worst, bias), then what was corrected, what was assumed,
/// why rows were skipped, what was fitted, and the `worst` rows of each source.
std::string score_text(const std::vector<SourceScore>& scores, const std::optional<FitResult>& fit, int worst);

/// {"sources": [{"file", "source", "rows", "scored", "skipped": [{"id", "reason"}], "step_time": {"count", "mape_pct",
/// "median_pct", "max_pct", "bias_pct"} or null, "memory", "layer_time", "step_time_uncorrected", "corrections",
/// "assumptions", "rank_correlation", "top1_regret_pct"}], "rows": [{"file", "id", "quantity", "predicted", "measured",
/// "error_pct", "uncorrected_error_pct"}], "fit": {"constants": [{"path", "preset", "fitted"}], "zero_seen",
/// "zero_unseen", "fitted_seen", "fitted_unseen"} or null}
nlohmann::ordered_json score_json(const std::vector<SourceScore>& scores, const std::optional<FitResult>& fit);

/// Step and layer times of all sources, one colour a source (score/scatter.h).
std::string score_scatter(const std::vector<SourceScore>& scores);

/// The scored quantities, those that are furthest off first; `count` at most.
std::vector<ScoredQuantity> furthest_off(const SourceScore& score, std::size_t count);

/// Reasons why rows were skipped, and how many of each, the most frequent first.
std::vector<std::pair<std::string, int>> skip_reasons(const SourceScore& score);

}}  // namespace plumb::tools
