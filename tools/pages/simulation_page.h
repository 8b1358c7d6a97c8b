#pragma once
// `plumb simulate --html`: a prediction as a page.

#include <string>

#include "planner/search/plan.h"
#include "simulator/simulate.h"
#include "tools/pages/page.h"
#include "tools/reports/simulation_report.h"

namespace plumb { inline namespace tools {

/// `plan` is null for a schedule without a model.
Page simulation_page(const std::string& title, const Simulation& simulation, const ReportContext& context,
                     const Plan* plan);

/// Ends a page with what repeats it: the command, the version, and the plan.
void add_inputs(Page& page, const std::string& command, const Plan* plan);

}}  // namespace plumb::tools
