#include "executor/training/device/device_world.h"

#include <algorithm>

namespace plumb { inline namespace executor {
namespace {

int size_of(const RankGrid& grid, int pipeline) {
  const StageMesh& mesh = mesh_of(grid, pipeline);
  return std::max(1, mesh.data * mesh.tensor * grid.grid.context);
}

/// Returns a rank's number in its mesh, in the order of the world's ranks.
int number_in_mesh(const RankGrid& grid, const GridCoordinates& place) {
  return place.tensor + mesh_of(grid, place.pipeline).tensor * (place.context + grid.grid.context * place.data);
}

}  // namespace

DeviceWorld::DeviceWorld(const TrainingPlan& plan, std::optional<int> own_rank)
    : grid_(plan.replay.grid), own_rank_(own_rank) {
  int largest = 1;
  for (int pipeline = 0; pipeline < static_cast<int>(grid_.meshes.size()); ++pipeline) {
    largest = std::max(largest, size_of(grid_, pipeline));
    has_like_meshes_ = has_like_meshes_ && mesh_of(grid_, pipeline) == mesh_of(grid_, 0);
  }
  if (!own_rank) lanes_ = largest;
}

GridCoordinates DeviceWorld::place(int pipeline, int lane) const {
  int number = lane;
  if (own_rank_) number = number_in_mesh(grid_, coordinates_of(grid_, *own_rank_));
  number %= size_of(grid_, pipeline);
  const int tensor = std::max(1, mesh_of(grid_, pipeline).tensor), context = std::max(1, grid_.grid.context);
  return {.tensor = number % tensor,
          .context = number / tensor % context,
          .data = number / tensor / context,
          .pipeline = pipeline};
}

int DeviceWorld::rank_of(int pipeline, int lane) const {
  if (!own_rank_ && lane >= size_of(grid_, pipeline)) return -1;
  return world_rank_of(grid_, place(pipeline, lane));
}

int DeviceWorld::lane_of(int rank) const {
  return own_rank_ ? 0 : number_in_mesh(grid_, coordinates_of(grid_, rank));
}

int DeviceWorld::track_lane(int rank) const {
  const GridCoordinates place = coordinates_of(grid_, rank);
  if (has_like_meshes_) return lane_of(rank);
  return place.data / std::max(1, parts_of_microbatch(grid_, place.pipeline));
}

}}  // namespace plumb::executor
