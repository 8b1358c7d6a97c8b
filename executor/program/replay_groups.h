#pragma once
// The process groups that a rank belongs to in a replay: the copies of its stages, and the two ends of tied tables.

#include <memory>
#include <vector>

#include "executor/program/replay_plan.h"
#include "executor/transport/clock.h"
#include "executor/transport/communicator.h"

namespace plumb { inline namespace executor {

/// The copies of a stage form one group, whether they are in lanes of one pipeline (DualPipe, Chimera), in replicas of
/// the pipeline or on context ranks. Their gradients are summed in one collective, and ZeRO divides the state over all
/// of them, so that with r replicas of two copies each every rank keeps 1/2r. Ranks of mirrored lanes are at the same
/// place of their lists when they meet (schedules/dependencies/like_copies.h). Where fewer replicas share state
/// (ReplayPolicy::shard), the copies form several such groups.
struct ReplayGroups {
  /// [stage] Communicator of the stage's copies that share state, over lanes, replicas and context ranks; null if there
  /// is one copy, and for stages of other ranks.
  std::vector<std::unique_ptr<Communicator>> copies;
  /// [stage] Communicator of the copies that have the same experts as this rank, or null.
  std::vector<std::unique_ptr<Communicator>> expert_copies;
  /// [stage] Communicator of the copies that hold the same share of the state, one of each such group, or null.
  std::vector<std::unique_ptr<Communicator>> same_shares;
  /// [pair of ReplayPlan::tied] Communicator of the pair's two ends, or of all ranks of both meshes where their shapes
  /// differ; null for other ranks, and if both ends are on one rank.
  std::vector<std::unique_ptr<Communicator>> tied;
};

/// Returns the group of all ranks of the grid.
CommunicatorGroup everyone_of(const RankGrid& grid);

/// The groups of ReplayGroups as names and ranks; a group has no ranks where ReplayGroups has null.
struct ReplayGroupRanks {
  std::vector<CommunicatorGroup> copies, expert_copies, same_shares, tied;
};
ReplayGroupRanks replay_group_ranks(const ReplayPlan& plan, const GridCoordinates& place);

/// Connects a rank's groups. `transport` must outlive the result.
ReplayGroups connect_groups(const ReplayPlan& plan, Transport& transport, const GridCoordinates& place,
                            const Clock& clock);

}}  // namespace plumb::executor
