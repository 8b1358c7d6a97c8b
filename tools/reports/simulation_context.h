#pragma once
// The facts that a simulation's report needs besides the simulation.

#include <optional>

#include "planner/evaluate/evaluation.h"
#include "planner/search/plan.h"
#include "simulator/network/network_sensitivity.h"
#include "tools/reports/simulation_report.h"

namespace plumb { inline namespace tools {

/// Adds to the report what a timeline explains. Where transfers share links the path alone tells no sensitivity.
ReportContext explained(ReportContext context, const Schedule& lowered, const CostTable& costs,
                        const Simulation& simulation);

/// Adds what the step's time is sensitive to where transfers share links, or why that cannot be told. Returns the
/// derivatives of a step that is not ill-conditioned.
std::optional<NetworkGradient> add_shared_sensitivity(ReportContext& context, const Schedule& lowered,
                                                      const CostTable& costs, const NetworkSpec& network, Sends sends);

/// Returns the facts of a plan, of which `evaluation` is made with a timeline, these options and sends.
ReportContext context_of(const Plan& plan, const Evaluation& evaluation, const NetworkOptions& options, Sends sends);

}}  // namespace plumb::tools
