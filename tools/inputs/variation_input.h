#pragma once
// `plumb whatif --vary` names fields of a plan, or presets that replace a part of it.

#include <string>

#include "planner/search/whatif.h"

namespace plumb { inline namespace tools {

/// Returns the variation of KEY=a,b,c. Where KEY is model, cluster or stack, the values are presets or files; a cluster
/// without a number of devices gets the plan's, and the stack "plumb" is Plumb's own executor. Throws UsageError if the
/// text has no such form, and as model_input, cluster_input and stack_input do.
Variation variation_input(const std::string& text, const Plan& plan);

}}  // namespace plumb::tools
