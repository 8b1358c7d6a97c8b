#pragma once
// A training on one device, from the spec to its result: stages, the plan of a replay, memory, recorded calls, steps.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/parameters/step_scale.h"
#include "executor/program/calls/placed_calls.h"
#include "executor/program/device/device_groups.h"
#include "executor/training/device/device_arenas.h"
#include "executor/training/device/device_stages.h"
#include "executor/training/device/device_world.h"
#include "executor/training/device/joint_step.h"
#include "executor/training/device/recorded_program.h"
#include "executor/training/device/run_device.h"
#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

class DeviceRun {
 public:
  /// own_rank: the one rank of the world that is here; none: all are. Spec and machine outlive it. Throws what
  /// run_device() throws before the first step.
  DeviceRun(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options, std::optional<int> own_rank);

  /// Trains, and returns the outcome of the rank that is here.
  DeviceRankResult run_rank(int rank);
  /// Trains, and returns the outcome of all ranks.
  RunResult run();

 private:
  struct Trained {
    std::vector<RankOutcome> ranks;      // [world rank] outcomes of those that are here
    std::vector<ModelValues> gradients;  // [step] where they are captured
  };

  Trained train();
  void run_replay(std::vector<RankOutcome>& ranks, int step);
  void end_step(std::vector<RankOutcome>& ranks);
  void add_bytes(std::vector<RankOutcome>& ranks);
  void save(int steps);
  ModelValues weights();
  template <class Visit>
  void for_each_rank(Visit visit) const;

  DeviceProgram planned_program(bool is_alone) const;
  std::int64_t taken_bytes(std::size_t rank) const;
  void require_memory();

  const RunSpec& spec_;
  const DeviceRunOptions options_;
  DeviceMachine& machine_;
  const TrainingPlan training_;
  const Schedule& schedule_;
  const DeviceWorld world_;
  DeviceGroupTable groups_;
  const bool agrees_;         // the optimizer's step depends on all stages' gradients
  const bool waits_for_all_;  // it depends on those, or on the other end's of a table
  LossScale loss_scale_;
  DeviceStages stages_;
  DeviceProgram program_;
  std::vector<std::vector<PlacedAction>> calls_;
  JointStep joint_;
  std::optional<DeviceArenas> arenas_;
  std::optional<RecordedProgram> recorded_;
};

}}  // namespace plumb::executor
