#pragma once
// The plan of a replay: a schedule that is known to be replayable, and what follows from it alone.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/spec/division/rank_grid.h"
#include "executor/spec/division/resharding_pieces.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// The two stages of one lane whose embedding and head share a table. Each holds a copy of the table. They may be the
/// same stage.
struct TiedStages {
  int embedding = 0;
  int head = 0;
  std::int64_t elements = 0;  ///< elements of the whole table, for ends on meshes of different shape
};

/// The REDUCE_GRADs that start with an action, as their positions in the rank's list, in the order in which they start.
/// Most start where they stand in the list.
struct PlacedReductions {
  std::vector<std::size_t> inside;  ///< REDUCE_GRADs that start inside the action, when their bucket is complete
  std::vector<std::size_t> behind;  ///< REDUCE_GRADs that start when the action has ended
};

/// The options of a run that the loop obeys besides its schedule.
struct ReplayPolicy {
  /// ZeRO stage: the state that the copies of a stage shard (executor/parameters/parameters.h).
  int zero = 0;
  /// Replicas, times context ranks, that share it; 0: all of them.
  int shard = 0;
  /// All ranks agree on a StepScale before the first OPTIMIZER_STEP of each.
  bool agrees = false;
  /// Each tensor rank holds a block of the tensors that stages send.
  bool sequence_parallel = false;
  /// How messages go between meshes of different shape.
  Resharding resharding = Resharding::kAllGather;
  /// Passes gather weights and reduce gradients layer by layer.
  bool layerwise = false;
};

/// True if the two passes of an overlapped pair take turns at their exchanges (schedules/phases.h). Two of one stage
/// that go layer by layer follow each other, since a stage gathers one layer ahead.
bool interleaves(const ReplayPolicy& policy, const Action& first, const Action& second);

/// The input of the loop: a valid schedule, and what follows from it alone.
struct ReplayPlan {
  Schedule schedule;
  RankGrid grid;
  std::vector<TiedStages> tied;
  StageNeighbors neighbors;
  int slices = 1;  ///< sequence slices in which each micro-batch runs
  ReplayPolicy policy;
  std::vector<std::vector<PlacedReductions>> reductions;  ///< [rank][position]
};

/// Returns the number of copies of each stage: stages with the same model part over lanes, replicas and context ranks.
/// [stage]
std::vector<int> copies_of_stages(const Schedule& schedule, const RankGrid& grid);

/// Returns the plan of a replay. Throws ScheduleError if the schedule
///
/// * is not valid (require_valid), does not fit the grid, or is not lowered (has no messages or no OPTIMIZER_STEPs),
/// * has two copies of a model part on one rank, or copies whose gradients are not reduced,
/// * gathers and drops parameters otherwise than the ZeRO stage needs, or is asynchronous with sharded parameters,
/// * lets ranks whose copies share gradients do different things (schedules/dependencies/like_copies.h),
/// * has copies of a model part, or BPipe's partners, on meshes of different shape,
/// * has gradients behind a rank's first OPTIMIZER_STEP although all ranks are to agree before it, or
/// * lets a stage of a tied table take its step on a rank before all gradients of its tied tables are complete there.
ReplayPlan plan_replay(const Schedule& lowered, const RankGrid& grid, std::vector<TiedStages> tied = {},
                       const ReplayPolicy& policy = {});

}}  // namespace plumb::executor
