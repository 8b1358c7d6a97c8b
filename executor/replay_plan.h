#pragma once
// What is settled before the replay of a schedule starts: that it can be replayed, and what follows from it alone.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/division/rank_grid.h"
#include "executor/division/resharding_pieces.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// Stages of one lane whose embedding and head share a table; each holds a copy. They may be the same stage.
struct TiedStages {
  int embedding = 0;
  int head = 0;
  std::int64_t elements = 0;  ///< of the whole table; for ends on meshes of different shape
};

/// REDUCE_GRADs that start with an action: the positions in the list at which they stand, in the order in which they
/// start. Most start where they stand.
struct PlacedReductions {
  std::vector<std::size_t> inside;  ///< as their buckets are complete
  std::vector<std::size_t> behind;  ///< when the action has ended
};

/// What a run asks of the loop besides its schedule.
struct ReplayPolicy {
  int zero =
      0;  ///< ZeRO stage: what all copies_of_stages() share of their state (executor/cpu/parameters/parameters.h)
  bool agrees = false;             ///< all ranks agree on a StepScale before the first OPTIMIZER_STEP of each
  bool sequence_parallel = false;  ///< tensor ranks hold a block each of what stages send
  Resharding resharding = Resharding::kAllGather;  ///< of messages between meshes of different shape
};

/// What the loop reads: a schedule that is valid, and what follows from it alone.
struct ReplayPlan {
  Schedule schedule;
  RankGrid grid;
  std::vector<TiedStages> tied;
  StageNeighbors neighbors;
  int slices = 1;  ///< that each micro-batch runs in
  ReplayPolicy policy;
  std::vector<std::vector<PlacedReductions>> reductions;  ///< [rank][position]
};

/// Copies of each stage: of its model part over lanes, replicas and parts of the context. [stage]
std::vector<int> copies_of_stages(const Schedule& schedule, const RankGrid& grid);

/// Throws ScheduleError if the schedule is not valid (require_valid), does not fit the grid, is not lowered (a message
/// or an OPTIMIZER_STEP is missing), has two copies of a model part on one rank, or copies whose gradients are not
/// reduced; if parameters are gathered and dropped otherwise than the ZeRO stage needs it, or are sharded in an
/// asynchronous schedule, or ranks with copies that share gradients do not do the same (schedules/dependencies/like_copies.h); if
/// copies of a model part, or BPipe's partners, lie on meshes of different shape; if ranks are to agree before their
/// steps and one has gradients behind its first; and if a tied table's gradients are not complete when the first of its
/// stages takes its step on the same rank.
ReplayPlan plan_replay(const Schedule& lowered, const RankGrid& grid, std::vector<TiedStages> tied = {},
                       const ReplayPolicy& policy = {});

}}  // namespace plumb::executor
