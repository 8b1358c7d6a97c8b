#pragma once
// The stages of a run as every rank that is here has them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/program/device/device_groups.h"
#include "executor/spec/run_spec.h"
#include "executor/stages/device/device_stage.h"
#include "executor/training/device/device_world.h"
#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

class DeviceStages {
 public:
  /// `training` and `world` outlive it.
  DeviceStages(const RunSpec& spec, const TrainingPlan& training, const DeviceWorld& world,
               const DeviceGroupTable& groups, std::int64_t update_window_bytes);

  const DeviceStage& at(int lane, std::size_t stage) const { return stages_[index(lane, stage)]; }

  /// Calls visit(world rank, stage) for those of the ranks that are here.
  template <class Visit>
  void for_each_here(Visit visit) {
    for (int lane = 0; lane < world_.lanes(); ++lane)
      for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage)
        if (const int rank = world_.rank_of(schedule_.stages[stage].rank, lane); world_.is_here(rank))
          visit(rank, stages_[index(lane, stage)]);
  }

 private:
  std::size_t index(int lane, std::size_t stage) const {
    return static_cast<std::size_t>(lane) * schedule_.stages.size() + stage;
  }

  const DeviceWorld& world_;
  const Schedule& schedule_;
  std::vector<DeviceStage> stages_;  // [lane, stage]
};

/// True if the model's embedding and head share a table.
bool has_tied_head(const RunSpec& spec);
/// True if what the optimizer does depends on all stages' gradients: they are clipped, or the loss is scaled.
bool agrees_on_steps(const RunSpec& spec);

}}  // namespace plumb::executor
