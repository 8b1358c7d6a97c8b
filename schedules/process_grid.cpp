#include "schedules/process_grid.h"

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace schedules {
namespace {

void require_rank(const ProcessGrid& grid, int world_rank) {
  if (world_rank < 0 || world_rank >= world_size(grid)) {
    throw SpecError(fmt::format("rank {} is not in a grid of {} ranks: give 0 to {}", world_rank, world_size(grid),
                                world_size(grid) - 1));
  }
}

}  // namespace

int world_size(const ProcessGrid& grid) {
  return grid.tensor * grid.context * grid.data * grid.pipeline;
}

GridCoordinates coordinates_of(const ProcessGrid& grid, int world_rank) {
  require_rank(grid, world_rank);
  GridCoordinates coordinates;
  coordinates.tensor = world_rank % grid.tensor;
  world_rank /= grid.tensor;
  coordinates.context = world_rank % grid.context;
  world_rank /= grid.context;
  coordinates.data = world_rank % grid.data;
  coordinates.pipeline = world_rank / grid.data;
  return coordinates;
}

int world_rank_of(const ProcessGrid& grid, const GridCoordinates& c) {
  const auto inside = [](int value, int size) { return value >= 0 && value < size; };
  if (!inside(c.tensor, grid.tensor) || !inside(c.context, grid.context) || !inside(c.data, grid.data) ||
      !inside(c.pipeline, grid.pipeline)) {
    throw SpecError(fmt::format("(tp {}, cp {}, dp {}, pp {}) lies outside the grid tp={} cp={} dp={} pp={}", c.tensor,
                                c.context, c.data, c.pipeline, grid.tensor, grid.context, grid.data, grid.pipeline));
  }
  return c.tensor + grid.tensor * (c.context + grid.context * (c.data + grid.data * c.pipeline));
}

int expert_rank_of(const ProcessGrid& grid, const GridCoordinates& coordinates) {
  return (coordinates.context + grid.context * coordinates.data) % grid.expert;
}

std::vector<int> group_ranks(const ProcessGrid& grid, Group group, int world_rank) {
  const GridCoordinates here = coordinates_of(grid, world_rank);
  std::vector<int> ranks;
  const auto along = [&](int size, int at, int stride) {
    ranks.reserve(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) ranks.push_back(world_rank + (i - at) * stride);
  };
  switch (group) {
    case Group::kTensor:
      along(grid.tensor, here.tensor, 1);
      break;
    case Group::kContext:
      along(grid.context, here.context, grid.tensor);
      break;
    case Group::kData:
      along(grid.data, here.data, grid.tensor * grid.context);
      break;
    case Group::kPipeline:
      along(grid.pipeline, here.pipeline, grid.tensor * grid.context * grid.data);
      break;
    case Group::kExpert: {
      const int flat = here.context + grid.context * here.data;
      const int first = flat - flat % grid.expert;
      for (int i = first; i < first + grid.expert; ++i) {
        GridCoordinates member = here;
        member.context = i % grid.context;
        member.data = i / grid.context;
        ranks.push_back(world_rank_of(grid, member));
      }
      break;
    }
  }
  return ranks;
}

}}  // namespace plumb::schedules
