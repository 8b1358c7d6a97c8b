#pragma once
// Which actions a device does in one call because ranks of one pipeline do them together: the REDUCE_GRADs of copies of
// a stage (schedules/dependencies/joint_reductions.h), their UNSHARDs, and, layer by layer, the passes in which they exchange.

#include <cstdint>
#include <vector>

#include "schedules/dependencies/dependencies.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// Passes in which copies of a stage exchange: layer by layer ZeRO 2 sums gradients in B and W, ZeRO 3 gathers weights
/// in all.
enum class JointPasses : std::uint8_t { kNone, kWeightGrads, kAll };

/// [action id] the first of those that are done together, itself where an action is alone. The k-th UNSHARD of each
/// copy meets the k-th of the others, and so the k-th of such passes; an overlapped pair is one, named by its first.
/// Throws ScheduleError where passes of copies that meet are not of one kind.
std::vector<std::int32_t> joint_leaders(const Schedule& schedule, JointPasses passes = JointPasses::kNone);

/// Whether it merely says in which order a rank's UNSHARDs are, of which other ranks have a part: these may list them
/// in another order, and a device has one for all. `leaders`: [action id], of joint_leaders(), or without those that
/// make no call.
bool is_order_of_joint_gathers(const Dependency& dependency, const std::vector<std::int32_t>& leaders);

}}  // namespace plumb::executor
