#pragma once
// The replay loop: one rank's list of a lowered schedule, in issue order, on whatever stages and transport it is given.
// It is the executor's only reading of docs/design.md and knows nothing of layers or devices.
//
//   const ReplayPlan plan = plan_replay(schedule, grid, tied);
//   RankTimeline measured = replay(plan, seat, clock());          // on each rank's thread or process
//
// Compute runs inline. A send is posted and goes its way; a receive is posted into memory taken at that moment and
// waited for by its consumer (stage_messages.h); what a stage's copies do together goes on beside it
// (copy_collectives.h). A pair runs one after the other. OFFLOAD, RELOAD, EVICT and LOAD copy inline: what they move is
// in the other memory when they end.

#include <functional>
#include <vector>

#include "executor/clock.h"
#include "executor/replay_groups.h"
#include "executor/replay_plan.h"
#include "executor/stage.h"
#include "executor/transport/transport.h"
#include "traces/timeline.h"

namespace plumb { inline namespace executor {

/// Who replays: a rank of the grid, with what it has.
struct ReplaySeat {
  GridCoordinates place;
  std::vector<Stage*> stages;  ///< [stage]; null for those of other ranks
  Transport* transport = nullptr;
  ReplayGroups* groups = nullptr;
  TensorPool* pool = nullptr;        ///< of messages; its live bytes are the timeline's memory
  TensorPool* host_pool = nullptr;   ///< where OFFLOAD takes activations
  Clock clock;                       ///< the transport's
  Communicator* everyone = nullptr;  ///< all ranks; for ReplayPolicy::agrees
  Communicator* tensor = nullptr;    ///< the tensor group; for messages between meshes of different shape
  std::function<StepScale(const GradientMeasure&)> settle;  ///< what all agree on, given the whole model's gradients
  std::function<void(RankTimeline)> interrupted;            ///< told what was done of a replay that failed
};

/// Replays the rank's list once and returns when it is done and its messages have left. Times count from `origin`.
/// Throws RunError with the rank, the action and the reason; RunAborted if another rank failed first.
RankTimeline replay(const ReplayPlan& plan, const ReplaySeat& seat, SimTime origin);

}}  // namespace plumb::executor
