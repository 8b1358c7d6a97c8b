#include "schedules/process_grid.h"

#include <algorithm>

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

/// The ranks of a group: every `stride`-th one, `size` in all, of which a given one stands at `at`.
struct GroupLine {
  int size = 1;
  int at = 0;
  int stride = 1;
};

GroupLine line_of(const ProcessGrid& grid, Group group, int world_rank) {
  const GridCoordinates here = coordinates_of(grid, world_rank);
  switch (group) {
    case Group::kTensor:
      return {.size = grid.tensor, .at = here.tensor, .stride = 1};
    case Group::kContext:
      return {.size = grid.context, .at = here.context, .stride = grid.tensor};
    case Group::kData:
      return {.size = grid.data, .at = here.data, .stride = grid.tensor * grid.context};
    case Group::kPipeline:
      return {.size = grid.pipeline, .at = here.pipeline, .stride = grid.tensor * grid.context * grid.data};
    case Group::kExpert:
      return {.size = grid.expert, .at = expert_rank_of(grid, here), .stride = expert_tensor_ranks(grid)};
  }
  return {};
}

}  // namespace

int expert_tensor_ranks(const ProcessGrid& grid) {
  return grid.expert_tensor > 0 ? grid.expert_tensor : grid.tensor;
}

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

int device_of(const ProcessGrid& grid, int world_rank) {
  require_rank(grid, world_rank);
  const int stage = grid.tensor * grid.context * grid.data;
  if (grid.together == 0 || grid.together == stage) return world_rank;
  const int in_stage = world_rank % stage;
  return (in_stage / grid.together * grid.pipeline + world_rank / stage) * grid.together + in_stage % grid.together;
}

int world_rank_on(const ProcessGrid& grid, int device) {
  require_rank(grid, device);
  const int stage = grid.tensor * grid.context * grid.data;
  if (grid.together == 0 || grid.together == stage) return device;
  const int block = device / grid.together;
  return block % grid.pipeline * stage + block / grid.pipeline * grid.together + device % grid.together;
}

std::vector<int> devices_of(const ProcessGrid& grid, std::vector<int> world_ranks) {
  for (int& rank : world_ranks) rank = device_of(grid, rank);
  std::ranges::sort(world_ranks);
  return world_ranks;
}

int expert_rank_of(const ProcessGrid& grid, const GridCoordinates& coordinates) {
  const int in_stage = coordinates.tensor + grid.tensor * (coordinates.context + grid.context * coordinates.data);
  return in_stage / expert_tensor_ranks(grid) % grid.expert;
}

std::vector<int> group_ranks(const ProcessGrid& grid, Group group, int world_rank) {
  const GroupLine line = line_of(grid, group, world_rank);
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(line.size));
  for (int i = 0; i < line.size; ++i) ranks.push_back(world_rank + (i - line.at) * line.stride);
  return ranks;
}

bool leads_group(const ProcessGrid& grid, Group group, int world_rank) {
  return line_of(grid, group, world_rank).at == 0;
}

}}  // namespace plumb::schedules
