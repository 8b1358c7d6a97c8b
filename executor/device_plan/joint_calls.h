#pragma once
// Which actions a device does in one call because ranks of one pipeline do them together: the REDUCE_GRADs of copies of
// a stage (schedules/joint_reductions.h), and their UNSHARDs.

#include <cstdint>
#include <vector>

#include "schedules/dependencies.h"
#include "schedules/schedule.h"

namespace plumb {

/// [action id] the first of those that are done together, itself where an action is alone. The k-th UNSHARD of each
/// copy meets the k-th of the others.
std::vector<std::int32_t> joint_leaders(const Schedule& schedule);

/// Whether it merely says in which order a rank's UNSHARDs are, of which other ranks have a part: these may list them
/// in another order, and a device has one for all. `leaders`: [action id], of joint_leaders(), or without those that
/// make no call.
bool is_order_of_joint_gathers(const Dependency& dependency, const std::vector<std::int32_t>& leaders);

}  // namespace plumb
