#pragma once
// A score as a page to keep: docs/fidelity.md.

#include <optional>
#include <string>
#include <vector>

#include "planner/score/fit.h"
#include "planner/score/score.h"

namespace plumb { inline namespace tools {

/// Markdown: the command, a table by source (rows, compared, mean, median, worst, bias, other predictors' errors beside
/// it), what was corrected and the error without it, what was assumed, why rows were skipped, how layouts were ranked,
/// what was fitted, and the ten step times that are furthest off with the shares of their prediction by component.
std::string score_page(const std::vector<SourceScore>& scores, const std::optional<FitResult>& fit,
                       const std::string& command);

}}  // namespace plumb::tools
