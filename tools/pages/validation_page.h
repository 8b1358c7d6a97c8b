#pragma once
// `plumb validate --html`: a prediction beside what was measured, as a page.

#include <string>

#include "tools/pages/page.h"
#include "tools/reports/verdict.h"
#include "traces/compare/compare.h"
#include "traces/timeline.h"

namespace plumb { inline namespace tools {

/// Returns the page: the verdict, both timelines with one scale, the causes of the error, time and memory by rank.
/// `measured` is the step that the comparison calls the median.
Page validation_page(const std::string& title, const Verdict& verdict, const Comparison& comparison,
                     const Timeline& predicted, const Timeline& measured, const std::string& machine);

}}  // namespace plumb::tools
