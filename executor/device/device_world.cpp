#include "executor/device/device_world.h"

#include <algorithm>

namespace plumb {

DeviceWorld::DeviceWorld(const TrainingPlan& plan, std::optional<int> own_rank)
    : grid_(plan.replay.grid), own_rank_(own_rank) {
  for (int rank = 0; rank < world_size(grid_); ++rank) {
    if (!is_here(rank)) continue;
    GridCoordinates place = coordinates_of(grid_, rank);
    if (!own_rank && place.pipeline > 0) continue;
    place.pipeline = 0;
    lanes_.push_back(place);
  }
}

int DeviceWorld::rank_of(int pipeline, int lane) const {
  GridCoordinates place = lanes_[static_cast<std::size_t>(lane)];
  place.pipeline = pipeline;
  return world_rank_of(grid_, place);
}

}  // namespace plumb
