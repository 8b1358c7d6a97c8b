#pragma once
// The calls of a run as they are recorded, once: each action of a rank as kernels and exchanges over places in its
// arena. Addresses stay the same from step to step.

#include <cstddef>
#include <optional>
#include <vector>

#include "executor/program/calls/placed_calls.h"
#include "executor/program/device/device_groups.h"
#include "executor/training/device/device_arenas.h"
#include "executor/training/device/device_messages.h"
#include "executor/training/device/device_stages.h"
#include "executor/training/device/device_world.h"
#include "executor/training/device/joint_step.h"
#include "executor/training/device/recorded_program.h"
#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

struct RecordingInputs {
  const TrainingPlan& training;
  const DeviceWorld& world;
  const DeviceStages& stages;
  const DeviceProgram& program;
  const std::vector<std::vector<PlacedAction>>& calls;  ///< placed_calls() of the program
  const DeviceArenas& arenas;
  const JointStep& joint;
  std::optional<std::size_t> joint_call;  ///< in which the joint step stands, if there is one
};

/// Records the program on all ranks that are here. Registers the channels of its messages in `groups`, all of them on
/// every rank. Throws SpecError if a REDUCE_GRAD would sum later than it stands.
RecordedProgram record_calls(const RecordingInputs& inputs, DeviceGroupTable& groups);

}}  // namespace plumb::executor
