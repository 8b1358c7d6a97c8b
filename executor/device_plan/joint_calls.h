#pragma once
// Which actions a device does in one call because ranks of one pipeline do them together: the REDUCE_GRADs of copies of
// a stage (schedules/joint_reductions.h), and their UNSHARDs.

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace plumb {

/// [action id] the first of those that are done together, itself where an action is alone. The k-th UNSHARD of each
/// copy meets the k-th of the others.
std::vector<std::int32_t> joint_leaders(const Schedule& schedule);

}  // namespace plumb
