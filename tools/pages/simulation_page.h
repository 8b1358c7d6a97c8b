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

/// Adds the parts of a simulation: the timeline, memory and time of each rank, and what binds the step.
void add_simulation(Page& page, const Simulation& simulation, const ReportContext& context, const Plan* plan);

/// Adds what 1 % more of each of the cluster's figures changes the step by, in per cent.
void add_binding(Page& page, const std::vector<ResourceSensitivity>& by_resource);

}}  // namespace plumb::tools
