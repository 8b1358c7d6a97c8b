#pragma once
// Which ranks of the world a run has on its machine: all of them, or one. A lane is a number within the mesh of each
// pipeline rank: where meshes are of one shape its ranks differ in their pipeline coordinate alone, and messages stay
// in it. Every lane does the pipeline's program.

#include <optional>
#include <vector>

#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

class DeviceWorld {
 public:
  /// own_rank: on a machine of its own; none: all ranks share one. The plan outlives it.
  DeviceWorld(const TrainingPlan& plan, std::optional<int> own_rank);

  int ranks() const { return world_size(grid_); }
  bool is_one_rank() const { return own_rank_.has_value(); }

  /// Those that have a rank here: as many as the largest mesh has ranks, or one.
  int lanes() const { return lanes_; }
  /// A rank in the mesh of a pipeline rank; some rank of it where the lane has none there.
  GridCoordinates place(int pipeline, int lane) const;
  /// -1 where the lane has none there.
  int rank_of(int pipeline, int lane) const;
  bool is_here(int rank) const { return rank >= 0 && (!own_rank_ || *own_rank_ == rank); }

  /// The lane of a rank that is here.
  int lane_of(int rank) const;
  /// Within which messages stay (CallTrack::lane): a lane, or where meshes differ in shape one of the pipelines.
  int track_lane(int rank) const;
  /// True if two pipeline ranks have meshes of one shape.
  bool are_alike(int one, int other) const { return mesh_of(grid_, one) == mesh_of(grid_, other); }

 private:
  const RankGrid& grid_;
  std::optional<int> own_rank_;
  bool has_like_meshes_ = true;
  int lanes_ = 1;
};

}}  // namespace plumb::executor
