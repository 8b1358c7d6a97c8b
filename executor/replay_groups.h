#pragma once
// The groups in which a rank meets others: the copies of its stages, the two ends of tied tables.

#include <memory>
#include <vector>

#include "executor/clock.h"
#include "executor/replay_plan.h"
#include "executor/transport/communicator.h"

namespace plumb { inline namespace executor {

/// Copies of a stage are one group, whether in lanes of one pipeline (DualPipe, Chimera), replicas of the pipeline or
/// parts of the context: their gradients are summed in one, and ZeRO divides its state over all of them, so that of r
/// replicas with two copies each every rank keeps 1/2r. Ranks of mirrored lanes are at the same place of their lists
/// when they meet (schedules/dependencies/like_copies.h).
struct ReplayGroups {
  std::vector<std::unique_ptr<Communicator>> copies;  ///< [stage] the stage's copies over lanes, replicas and parts of
                                                      ///< the context; null where there is one, and for other ranks
  std::vector<std::unique_ptr<Communicator>> expert_copies;  ///< [stage] those of them that have the same experts
  std::vector<std::unique_ptr<Communicator>> tied;  ///< [pair of ReplayPlan::tied] its two ends, or all ranks of both
                                                    ///< meshes where their shapes differ; null if on one rank
};

/// The group of all ranks of the grid.
CommunicatorGroup everyone_of(const RankGrid& grid);

/// The same groups as names and ranks; without ranks where ReplayGroups has null.
struct ReplayGroupRanks {
  std::vector<CommunicatorGroup> copies, expert_copies, tied;
};
ReplayGroupRanks replay_group_ranks(const ReplayPlan& plan, const GridCoordinates& place);

/// `transport` outlives them.
ReplayGroups connect_groups(const ReplayPlan& plan, Transport& transport, const GridCoordinates& place,
                            const Clock& clock);

}}  // namespace plumb::executor
