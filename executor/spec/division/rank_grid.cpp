#include "executor/spec/division/rank_grid.h"

#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

int size_of(const RankGrid& ranks, const StageMesh& mesh) {
  return mesh.data * ranks.grid.context * mesh.tensor;
}

void require_inside(int index, int count, const char* what) {
  if (index < 0 || index >= count)
    throw SpecError(fmt::format("{} {}: there are {}, counted from 0", what, index, count));
}

}  // namespace

RankGrid::RankGrid(const ProcessGrid& grid, std::vector<StageMesh> meshes) : grid(grid), meshes(std::move(meshes)) {
  if (this->meshes.empty())
    this->meshes.assign(static_cast<std::size_t>(grid.pipeline), {.data = grid.data, .tensor = grid.tensor});
}

int world_size(const RankGrid& ranks) {
  int size = 0;
  for (const StageMesh& mesh : ranks.meshes) size += size_of(ranks, mesh);
  return size;
}

GridCoordinates coordinates_of(const RankGrid& ranks, int world_rank) {
  require_inside(world_rank, world_size(ranks), "rank");
  GridCoordinates place;
  for (int left = world_rank; const StageMesh& mesh : ranks.meshes) {
    if (left < size_of(ranks, mesh)) {
      place.tensor = left % mesh.tensor;
      place.context = left / mesh.tensor % ranks.grid.context;
      place.data = left / mesh.tensor / ranks.grid.context;
      break;
    }
    left -= size_of(ranks, mesh);
    ++place.pipeline;
  }
  return place;
}

int world_rank_of(const RankGrid& ranks, const GridCoordinates& coordinates) {
  require_inside(coordinates.pipeline, static_cast<int>(ranks.meshes.size()), "pipeline rank");
  const StageMesh& mesh = mesh_of(ranks, coordinates.pipeline);
  require_inside(coordinates.tensor, mesh.tensor, "tensor rank");
  require_inside(coordinates.context, ranks.grid.context, "context rank");
  require_inside(coordinates.data, mesh.data, "data rank");
  int first = 0;
  for (int before = 0; before < coordinates.pipeline; ++before) first += size_of(ranks, mesh_of(ranks, before));
  return first + (coordinates.data * ranks.grid.context + coordinates.context) * mesh.tensor + coordinates.tensor;
}

std::vector<int> group_ranks(const RankGrid& ranks, Group group, int world_rank) {
  if (group == Group::kExpert)  // experts are spread over meshes of one shape only
    return ranks.grid.expert == 1 ? std::vector{world_rank} : group_ranks(ranks.grid, group, world_rank);
  assert(group == Group::kTensor || group == Group::kContext || group == Group::kData);
  GridCoordinates place = coordinates_of(ranks, world_rank);
  const StageMesh& mesh = mesh_of(ranks, place.pipeline);
  int& moving = group == Group::kTensor ? place.tensor : group == Group::kContext ? place.context : place.data;
  const int count = group == Group::kTensor ? mesh.tensor : group == Group::kContext ? ranks.grid.context : mesh.data;
  std::vector<int> members;
  for (moving = 0; moving < count; ++moving) members.push_back(world_rank_of(ranks, place));
  return members;
}

const StageMesh& mesh_of(const RankGrid& ranks, int pipeline_rank) {
  return ranks.meshes[static_cast<std::size_t>(pipeline_rank)];
}

int parts_of_microbatch(const RankGrid& ranks, int pipeline_rank) {
  return mesh_of(ranks, pipeline_rank).data / ranks.grid.data;
}

}}  // namespace plumb::executor
