#pragma once
// The replay loop: performs one rank's list of a lowered schedule, in issue order, on any stages and transport. It is
// the executor's only reading of docs/design.md and knows nothing of layers or devices.
//
//   const ReplayPlan plan = plan_replay(schedule, grid, tied);
//   RankTimeline measured = replay(plan, seat, clock());          // on each rank's thread or process
//
// Compute runs inline. A send is posted and the loop goes on; a receive is posted into memory taken at that moment and
// waited for by its consumer (stage_messages.h). Collectives among a stage's copies run beside the loop
// (copy_collectives.h). The two actions of an overlapped pair start when the inputs of both are there, and both deliver
// at the pair's end. OFFLOAD, RELOAD, EVICT and LOAD copy inline: the tensors are in the other memory when the action
// ends.

#include <functional>
#include <vector>

#include "executor/program/replay_groups.h"
#include "executor/program/replay_plan.h"
#include "executor/stages/stage.h"
#include "executor/transport/clock.h"
#include "executor/transport/transport.h"
#include "traces/timeline.h"

namespace plumb { inline namespace executor {

/// Runs the two actions of an overlapped pair, whose works are given, and returns when both have ended.
using PairRunner = std::function<void(const Action& first, const Action& second, const std::function<void()>& run_first,
                                      const std::function<void()>& run_second)>;

/// A rank of the grid with all that it replays with.
struct ReplaySeat {
  GridCoordinates place;
  std::vector<Stage*> stages;  ///< [stage]; null for the stages of other ranks
  Transport* transport = nullptr;
  ReplayGroups* groups = nullptr;
  TensorPool* pool = nullptr;        ///< the rank's memory, also for messages; its live bytes are the timeline's
  TensorPool* host_pool = nullptr;   ///< host memory to which OFFLOAD copies activations
  Clock clock;                       ///< the transport's clock
  Communicator* everyone = nullptr;  ///< communicator of all ranks, for ReplayPolicy::agrees
  Communicator* tensor = nullptr;    ///< the tensor group, for messages between meshes of different shape
  PairRunner run_pair;
  /// Returns the scale that all ranks agree on, from the whole model's gradients.
  std::function<StepScale(const GradientMeasure&)> settle;
  std::function<void(RankTimeline)> interrupted;  ///< receives the part of a replay that was done when it failed
};

/// Replays the rank's list once and returns its timeline when all actions are done and all messages have left. Times
/// count from `origin`. Throws RunError with the rank, the action and the reason, or RunAborted if another rank failed
/// first.
RankTimeline replay(const ReplayPlan& plan, const ReplaySeat& seat, SimTime origin);

}}  // namespace plumb::executor
