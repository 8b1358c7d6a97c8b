#pragma once
// The work that ranks do together before their first OPTIMIZER_STEPs, when all of their gradients are complete: the
// ends of a tied table sum its gradient, and where the step depends on all gradients, every rank measures its share of
// them and all sum the measures. It stands in the first of these calls, of which the other ranks then have a part, too.
// The order is that of the cpu backend.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/program/calls/placed_calls.h"
#include "executor/program/calls/recorded_calls.h"
#include "executor/program/device/device_groups.h"
#include "executor/training/device/device_stages.h"
#include "executor/training/device/device_world.h"
#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

/// Throws SpecError if a rank has gradients behind its first OPTIMIZER_STEP: ranks meet when all are complete.
void require_joint_step(const Schedule& schedule);

class JointStep {
 public:
  /// agrees: the step depends on all gradients. The rest outlives it.
  JointStep(const TrainingPlan& training, const DeviceWorld& world, const DeviceGroupTable& groups,
            const DeviceStages& stages, bool agrees);

  /// Returns the call in which it stands; none where nothing is done together.
  std::optional<std::size_t> find(const std::vector<std::vector<PlacedAction>>& calls) const;
  /// True if a pipeline rank has a part of it.
  bool joins(std::size_t pipeline) const;

  /// Bytes of a pipeline rank's measure, and of the whole tables that it sums.
  std::int64_t bytes(std::size_t pipeline) const { return measure_bytes(pipeline) + whole_table_bytes(pipeline); }
  void allocate(DeviceMachine& machine);

  /// Address of a rank's numbers, which get its measure and then that of all ranks; null where no rank measures.
  StepNumbers* measure(std::size_t pipeline, int lane) const;

  /// [phase] the pieces of a rank's part. In each phase all ranks have as many pieces once they are made even.
  std::vector<std::vector<RecordedPiece>> phases(std::size_t pipeline, int lane) const;

 private:
  const DeviceStage& stage_of(int lane, int stage) const { return stages_.at(lane, static_cast<std::size_t>(stage)); }
  bool is_on(int stage, std::size_t pipeline) const {
    return static_cast<std::size_t>(schedule_.stages[static_cast<std::size_t>(stage)].rank) == pipeline;
  }
  bool is_tied_end(int stage) const;
  bool is_between_meshes(const TiedStages& pair) const;
  std::int64_t measure_bytes(std::size_t pipeline) const;
  std::int64_t whole_table_bytes(std::size_t pipeline) const;
  void sum_ends(CallRecorder& sums, std::size_t pair, std::size_t pipeline, int lane) const;
  void sum_between_meshes(CallRecorder& sums, std::size_t pair, std::size_t pipeline, int lane) const;
  void measure_gradients(CallRecorder& measures, std::size_t pipeline, int lane) const;
  std::size_t index(std::size_t pipeline, int lane) const {
    return static_cast<std::size_t>(lane) * schedule_.ranks.size() + pipeline;
  }

  const TrainingPlan& training_;
  const Schedule& schedule_;
  const DeviceWorld& world_;
  const DeviceGroupTable& groups_;
  const DeviceStages& stages_;
  const bool agrees_;
  std::vector<StepNumbers*> measures_;  // [lane, rank] and behind the numbers partial sums; empty: no rank measures
  std::vector<float*> whole_tables_;    // [lane, rank] of tied tables whose ends are on meshes of different shape
};

}}  // namespace plumb::executor
