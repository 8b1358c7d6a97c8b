#pragma once
// A note where a narrow precision does not pay.

#include <string>

#include "planner/evaluate/evaluation.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

/// Returns a sentence with the reason where a plan in fp8 is predicted slower than the same layout in bf16; empty for
/// other plans.
std::string slower_than_bf16(const Plan& plan, const StepSums& predicted);

}}  // namespace plumb::tools
