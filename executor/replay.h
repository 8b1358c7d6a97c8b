#pragma once
// The replay loop: one rank's list of a lowered schedule, in issue order, on whatever stages and transport it is given.
// It is the executor's only reading of DESIGN.md section 3 and knows nothing of layers or devices.
//
//   const ReplayPlan plan = plan_replay(schedule, grid, tied);
//   RankTimeline measured = replay(plan, seat, clock());          // on each rank's thread or process
//
// Compute runs inline. A send is posted and goes its way; a receive is posted into memory taken at that moment and
// waited for by its consumer; REDUCE_GRAD is joined and waited for by the OPTIMIZER_STEP. A pair runs one after the
// other. Where a REDUCE_GRAD stands before the stage's last weight gradient, inside which it could start, or the stage
// has several buckets, all of them are summed together as soon as both are there, and drawn as the last of them.
// OFFLOAD, RELOAD, EVICT and LOAD copy inline: what they move is in the other memory when they end.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "executor/clock.h"
#include "executor/communicator.h"
#include "executor/stage.h"
#include "executor/transport.h"
#include "schedules/process_grid.h"
#include "schedules/schedule.h"
#include "traces/timeline.h"

namespace plumb {

/// Stages of one lane whose embedding and head share a table; each holds a copy. They may be the same stage.
struct TiedStages {
  int embedding = 0;
  int head = 0;
};

/// What the loop reads: a schedule that is valid, and what follows from it alone.
struct ReplayPlan {
  Schedule schedule;
  ProcessGrid grid;
  std::vector<TiedStages> tied;
  StageNeighbors neighbors;
  int slices = 1;  ///< that each micro-batch runs in
  /// [rank][position] behind it the gradients of its stage are summed, which is drawn as the action at this position
  /// (the stage's last REDUCE_GRAD); -1: nothing is summed.
  std::vector<std::vector<std::int64_t>> sums_gradients;
};

/// Throws ScheduleError if the schedule is not valid (require_valid), does not fit the grid, is not lowered (a message
/// or an OPTIMIZER_STEP is missing), or asks for what this loop does not do: sharded parameters over replicas, two
/// copies of a model part on one rank; if there are copies and gradients are not reduced; and if a tied table's
/// gradients are not complete when the first of its stages takes its step on the same rank.
ReplayPlan plan_replay(const Schedule& lowered, const ProcessGrid& grid, std::vector<TiedStages> tied = {});

/// The groups in which a rank sums gradients.
struct ReplayGroups {
  std::vector<std::unique_ptr<Communicator>> copies;  ///< [stage] the stage's copies over lanes, replicas and parts of
                                                      ///< the context; null where there is one, and for other ranks
  std::vector<std::unique_ptr<Communicator>> tied;    ///< [pair of ReplayPlan::tied] its two ends; null if on one rank
};

/// `transport` outlives them.
ReplayGroups connect_groups(const ReplayPlan& plan, Transport& transport, const GridCoordinates& place,
                            const Clock& clock);

/// Who replays: a rank of the grid, with what it has.
struct ReplaySeat {
  GridCoordinates place;
  std::vector<Stage*> stages;  ///< [stage]; null for those of other ranks
  Transport* transport = nullptr;
  ReplayGroups* groups = nullptr;
  TensorPool* pool = nullptr;       ///< of messages; its live bytes are the timeline's memory
  TensorPool* host_pool = nullptr;  ///< where OFFLOAD takes activations
  Clock clock;                      ///< the transport's
};

/// Replays the rank's list once and returns when it is done and its messages have left. Times count from `origin`.
/// Throws RunError with the rank, the action and the reason; RunAborted if another rank failed first.
RankTimeline replay(const ReplayPlan& plan, const ReplaySeat& seat, SimTime origin);

}  // namespace plumb
