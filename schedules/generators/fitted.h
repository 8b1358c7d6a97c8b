#pragma once
// Generators whose order depends on what the actions take.

#include <vector>

#include "schedules/generators/generators.h"

namespace plumb { inline namespace schedules {

/// True where F, I and W all take the same on every stage and links are free: what orders are drawn for in the papers.
bool has_equal_costs(const ScheduleParameters& parameters, int stages);

/// The best order for the parameters' costs that is found from the candidates (schedules/synthesis/fit_to_costs.h).
Schedule fitted(const std::vector<Schedule>& candidates, const ScheduleParameters& parameters, int rank_limit);

}}  // namespace plumb::schedules
