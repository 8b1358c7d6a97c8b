#pragma once
// `plumb whatif --html`: a sweep as a page.

#include <vector>

#include "planner/search/plan.h"
#include "planner/search/resource_sensitivity.h"
#include "planner/search/whatif.h"
#include "tools/pages/page.h"

namespace plumb { inline namespace tools {

/// Returns the page: step time and memory over the last key, with a line for each combination of the others, the table,
/// and what binds the plan that is varied.
Page whatif_page(const Plan& plan, const std::vector<WhatIfRow>& rows,
                 const std::vector<ResourceSensitivity>& by_resource);

}}  // namespace plumb::tools
