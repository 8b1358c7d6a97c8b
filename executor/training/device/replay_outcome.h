#pragma once
// The measurements of a replay on a device, as each rank of the run has them: a timeline, and the losses.

#include <cstdint>
#include <vector>

#include "executor/program/calls/placed_calls.h"
#include "executor/training/device/device_stages.h"
#include "executor/training/device/device_world.h"
#include "executor/training/device/recorded_program.h"
#include "executor/training/run_result.h"
#include "executor/training/training_plan.h"
#include "traces/timeline.h"

namespace plumb { inline namespace executor {

struct RankReplay {
  int rank = 0;           ///< of the world
  RankTimeline timeline;  ///< without its memory
  SimTime end{0};
  std::vector<MicrobatchLoss> losses, balance_losses;
};

struct ReplayInputs {
  const TrainingPlan& training;
  const DeviceWorld& world;
  const DeviceStages& stages;
  const std::vector<std::vector<PlacedAction>>& calls;  ///< placed_calls() of the program
  const RecordedProgram& recorded;
};

/// Returns the measurements of all ranks that are here. times: [world call] of the replay.
std::vector<RankReplay> replay_outcomes(const ReplayInputs& inputs, DeviceMachine& machine,
                                        const std::vector<CallTimes>& times);

}}  // namespace plumb::executor
