#pragma once
// The errors of predictions by source, and those of sources that were left out apart, as a picture shows them.

#include <optional>
#include <string>
#include <vector>

#include "planner/score/score.h"
#include "tools/reports/left_out_report.h"
#include "traces/draw/difference_chart.h"

namespace plumb { inline namespace tools {

/// Returns panels of step times and memory in per cent. A source has its bias and the range of its rows' errors; a
/// source that was left out has its bias and the interval in which four of five measurements shall lie.
std::vector<DifferencePanel> error_panels(const std::vector<SourceScore>& scores,
                                          const std::optional<LeftOut>& left_out);

/// Returns these panels as a picture.
std::string source_errors_svg(const std::vector<DifferencePanel>& panels);

}}  // namespace plumb::tools
