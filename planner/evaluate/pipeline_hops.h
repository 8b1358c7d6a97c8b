#pragma once
// The pairs of pipeline ranks between which a schedule's messages go.

#include <utility>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

/// (source rank, destination rank), both directions of each boundary between stages on different ranks, in the order of
/// the stages; a pair of ranks with several boundaries comes several times.
std::vector<std::pair<int, int>> pipeline_hops(const Schedule& schedule);

/// Returns [stage] the place among them of the hop from its predecessor, which the hop back follows; -1 where the two
/// are on one rank, or it has no predecessor.
std::vector<int> hops_to(const Schedule& schedule);

}}  // namespace plumb::planner
