#include "planner/price/collective/group_placement.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <tuple>

namespace plumb { inline namespace planner {

GroupPlacement placement_of(const std::vector<int>& world_ranks, int devices_per_node) {
  assert(std::ranges::is_sorted(world_ranks));
  const int ranks = static_cast<int>(world_ranks.size());
  GroupPlacement placement{.ranks = ranks, .nodes = 0, .ranks_per_node = ranks};
  for (int first = 0, next = 0; first < ranks; first = next) {
    const int node = world_ranks[first] / devices_per_node;
    while (next < ranks && world_ranks[next] / devices_per_node == node) ++next;
    ++placement.nodes;
    placement.ranks_per_node = std::min(placement.ranks_per_node, next - first);
  }
  return placement;
}

GroupPlacement worst_placement(const ProcessGrid& grid, Group group, int pipeline_rank, int devices_per_node) {
  assert(group == Group::kTensor || group == Group::kContext || group == Group::kData);
  const int block = grid.tensor * grid.context * grid.data;
  const int first = pipeline_rank * block;
  std::optional<GroupPlacement> worst;
  for (int rank = first; rank < first + block; ++rank) {
    if (!leads_group(grid, group, rank)) continue;
    const GroupPlacement placement = placement_of(group_ranks(grid, group, rank), devices_per_node);
    const auto badness = [](const GroupPlacement& p) { return std::tuple(p.nodes, -p.ranks_per_node); };
    if (!worst || badness(placement) > badness(*worst)) worst = placement;
  }
  return *worst;
}

}}  // namespace plumb::planner
