#pragma once
// `plumb score --html`: how far predictions are off, as a page.

#include <optional>
#include <string>
#include <vector>

#include "planner/score/score.h"
#include "tools/pages/page.h"
#include "tools/reports/left_out_report.h"

namespace plumb { inline namespace tools {

/// Returns the page: the errors by source with the range of their rows, the sources that were left out apart, each with
/// its interval, and predictions over measurements.
Page fidelity_page(const std::vector<SourceScore>& scores, const std::optional<LeftOut>& left_out);

}}  // namespace plumb::tools
