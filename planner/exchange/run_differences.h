#pragma once
// Tells whether a run that a trainer describes is the run of a plan.

#include <string>
#include <vector>

#include "planner/exchange/facts/facts.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace planner {

/// Returns what the run says otherwise than the plan, as "tp is 4 there, and 8 in the plan"; facts that the run leaves
/// open are no differences.
std::vector<std::string> run_differences(const ReadRun& run, const Plan& plan);

}}  // namespace plumb::planner
