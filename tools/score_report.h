#pragma once
// How a score is told: to people as a table, to programs as JSON.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/score/score.h"

namespace plumb {

/// A line a source and quantity (rows, scored, mean, median, worst, bias), then what was corrected, what was assumed,
/// why rows were skipped, and the `worst` rows of each source.
std::string score_text(const std::vector<SourceScore>& scores, int worst);

/// {"sources": [{"file", "source", "rows", "scored", "skipped": [{"id", "reason"}], "step_time": {"count", "mape_pct",
/// "median_pct", "max_pct", "bias_pct"} or null, "memory", "layer_time", "step_time_uncorrected", "corrections",
/// "assumptions", "rank_correlation", "top1_regret_pct"}], "rows": [{"file", "id", "quantity", "predicted", "measured",
/// "error_pct", "uncorrected_error_pct"}]}
nlohmann::ordered_json score_json(const std::vector<SourceScore>& scores);

}  // namespace plumb
