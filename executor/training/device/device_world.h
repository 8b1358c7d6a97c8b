#pragma once
// The ranks of the world that a run has on its machine: all of them, or one. A lane is a number within the mesh of each
// pipeline rank. Where meshes are of one shape, the ranks of a lane differ in their pipeline coordinate alone, and
// messages stay in the lane. Every lane does the pipeline's program.

#include <optional>
#include <vector>

#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

class DeviceWorld {
 public:
  /// own_rank: the one rank that is on this machine; none: all ranks are. The plan outlives it.
  DeviceWorld(const TrainingPlan& plan, std::optional<int> own_rank);

  int ranks() const { return world_size(grid_); }
  bool is_one_rank() const { return own_rank_.has_value(); }

  /// Lanes that have a rank here: as many as the largest mesh has ranks, or one.
  int lanes() const { return lanes_; }
  /// Returns the place of the lane's rank in the mesh of a pipeline rank; that of another rank of the mesh where the
  /// lane has none there.
  GridCoordinates place(int pipeline, int lane) const;
  /// Returns the lane's rank of the world in that mesh; -1 where it has none there.
  int rank_of(int pipeline, int lane) const;
  bool is_here(int rank) const { return rank >= 0 && (!own_rank_ || *own_rank_ == rank); }

  /// Returns the lane of a rank that is here.
  int lane_of(int rank) const;
  /// Returns the CallTrack::lane of a rank, within which messages stay: its lane, or where meshes differ in shape its
  /// pipeline.
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
