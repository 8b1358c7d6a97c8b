#pragma once
// The score as a page to keep: docs/fidelity.md.

#include <optional>
#include <string>
#include <vector>

#include "planner/score/fit.h"
#include "planner/score/score.h"

namespace plumb { inline namespace tools {

/// Returns a page of Markdown. It has the command; the section of `left_out` (left_out_report.h), which may be empty; a table by source (rows, compared, mean, median, worst, bias, and
/// the errors of other predictors); the corrections and the errors without them; the assumptions; the reasons why rows
/// were skipped; the ranking of layouts; the fitted constants; and the ten step times with the largest errors, with the
/// shares of their prediction by component.
std::string score_page(const std::vector<SourceScore>& scores, const std::optional<FitResult>& fit,
                       const std::string& command, const std::string& left_out);

}}  // namespace plumb::tools
