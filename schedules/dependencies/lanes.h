#pragma once
// A lane is one pipeline of a schedule.

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns [stage] the first stage of its lane.
std::vector<int> first_stages(const Schedule& schedule);

}}  // namespace plumb::schedules
