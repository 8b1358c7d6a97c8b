#include "planner/price/collective/group_placement.h"

#include <algorithm>
#include <cassert>
#include <numeric>
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

GroupPlacement worst_placement(const ProcessGrid& grid, Group group, int first_device, int devices_per_node) {
  assert(group == Group::kTensor || group == Group::kContext || group == Group::kData);
  const int block = grid.tensor * grid.context * grid.data;
  std::vector<int> ranks = group_ranks(grid, group, 0);
  if (ranks.size() == 1) return {};
  for (int& rank : ranks) rank += first_device;
  // The other groups are the first one, shifted; those that start at one place of a node are placed alike.
  const int first = ranks.front(), stride = ranks[1] - first, span = stride * static_cast<int>(ranks.size());
  std::vector<bool> seen(static_cast<std::size_t>(devices_per_node));
  std::optional<GroupPlacement> worst;
  for (int block_start = 0; block_start < std::min(block, std::lcm(span, devices_per_node)); block_start += span) {
    for (int start = block_start; start < block_start + std::min(stride, devices_per_node); ++start) {
      if (seen[(first + start) % devices_per_node]) continue;
      seen[(first + start) % devices_per_node] = true;
      const int shift = first + start - ranks.front();
      for (int& rank : ranks) rank += shift;
      const GroupPlacement placement = placement_of(ranks, devices_per_node);
      const auto badness = [](const GroupPlacement& p) { return std::tuple(p.nodes, -p.ranks_per_node); };
      if (!worst || badness(placement) > badness(*worst)) worst = placement;
    }
  }
  return *worst;
}

}}  // namespace plumb::planner
