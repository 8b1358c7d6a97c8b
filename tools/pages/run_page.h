#pragma once
// `plumb compare --html`: a run of the user's beside its plan, as a page.

#include "tools/pages/page.h"
#include "tools/reports/observed_report.h"

namespace plumb { inline namespace tools {

/// Returns the page: the verdict, the timed parts predicted and measured, their errors, and the figures that explain the
/// step.
Page run_page(const ObservedReport& report);

}}  // namespace plumb::tools
