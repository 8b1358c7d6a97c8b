#pragma once
// Which ranks of the world a run has on its machine: all of them, or one. Ranks that differ in their pipeline
// coordinate alone are a lane; every lane does the pipeline's program, and messages stay in it.

#include <optional>
#include <vector>

#include "executor/training/training_plan.h"

namespace plumb {

class DeviceWorld {
 public:
  /// own_rank: on a machine of its own; none: all ranks share one. The plan outlives it.
  DeviceWorld(const TrainingPlan& plan, std::optional<int> own_rank);

  int ranks() const { return world_size(grid_); }
  bool is_one_rank() const { return own_rank_.has_value(); }

  /// Those that have a rank here.
  int lanes() const { return static_cast<int>(lanes_.size()); }
  /// `pipeline` of no meaning.
  const GridCoordinates& lane(int number) const { return lanes_[static_cast<std::size_t>(number)]; }
  int rank_of(int pipeline, int lane) const;
  bool is_here(int rank) const { return !own_rank_ || *own_rank_ == rank; }

 private:
  const RankGrid& grid_;
  std::optional<int> own_rank_;
  std::vector<GridCoordinates> lanes_;
};

}  // namespace plumb
