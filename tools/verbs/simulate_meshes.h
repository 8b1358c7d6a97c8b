#pragma once
// `plumb simulate --meshes`: a plan on pipeline ranks that are meshes of different shape.

#include "planner/search/plan.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Prints the step, each pipeline rank's mesh with its work and memory, and each resharding between meshes of different
/// shape beside the other ways. Throws InputError if `meshes` is no list of meshes, or with options that are not for
/// these (noise, slow ranks, links, timelines); SpecError as price_unequal_stages does.
int simulate_meshes(const Plan& plan, const SimulateArguments& arguments);

}}  // namespace plumb::tools
