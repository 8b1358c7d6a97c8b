#pragma once
// Groups the actions that a device does in one call because ranks of one pipeline do them together: the REDUCE_GRADs of
// copies of a stage (schedules/dependencies/joint_reductions.h), their UNSHARDs, and the passes in which they exchange
// layer by layer.

#include <cstdint>
#include <vector>

#include "schedules/dependencies/dependencies.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// The passes in which copies of a stage exchange: layer by layer, ZeRO 2 sums gradients in B and W, and ZeRO 3 gathers
/// weights in all of them.
enum class JointPasses : std::uint8_t { kNone, kWeightGrads, kAll };

/// Returns [action id] the first of the actions that are done together, or the action itself if it is alone. The k-th
/// UNSHARD of each copy meets the k-th of the others, and so do such passes. An overlapped pair counts as one, by its
/// first action. Throws ScheduleError if passes of copies that meet are of different kinds.
std::vector<std::int32_t> joint_leaders(const Schedule& schedule, JointPasses passes = JointPasses::kNone);

/// True if the dependency only orders a rank's UNSHARDs (or other gathers) that other ranks take part in. These ranks
/// may list them in another order, and a device has one order for all. `leaders`: [action id], from joint_leaders(), or
/// -1 for actions without a call.
bool is_order_of_joint_gathers(const Dependency& dependency, const std::vector<std::int32_t>& leaders);

}}  // namespace plumb::executor
