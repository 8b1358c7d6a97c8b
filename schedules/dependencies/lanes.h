#pragma once
// Pipelines of a schedule.

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// [stage] the first stage of its lane.
std::vector<int> first_stages(const Schedule& schedule);

}}  // namespace plumb::schedules
