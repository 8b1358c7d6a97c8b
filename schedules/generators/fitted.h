#pragma once
// Serves generators whose order depends on how long the actions take.

#include <vector>

#include "schedules/generators/generators.h"

namespace plumb { inline namespace schedules {

/// True where F, I and W all take the same time on every stage and links are free: the papers draw their orders for
/// this.
bool has_equal_costs(const ScheduleParameters& parameters, int stages);

/// Returns the best order for the parameters' costs that is found from the candidates
/// (schedules/synthesis/fit_to_costs.h).
Schedule fitted(const std::vector<Schedule>& candidates, const ScheduleParameters& parameters, int rank_limit);

}}  // namespace plumb::schedules
