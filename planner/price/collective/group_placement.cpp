#include "planner/price/collective/group_placement.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>
#include <tuple>

namespace plumb { inline namespace planner {
namespace {

bool is_worse(const GroupPlacement& one, const GroupPlacement& other) {
  return std::tuple(one.nodes, -one.ranks_per_node) > std::tuple(other.nodes, -other.ranks_per_node);
}

}  // namespace

GroupPlacement placement_of(const std::vector<int>& devices, int devices_per_node) {
  assert(std::ranges::is_sorted(devices));
  const int ranks = static_cast<int>(devices.size());
  GroupPlacement placement{.ranks = ranks, .nodes = 0, .ranks_per_node = ranks};
  for (int first = 0, next = 0; first < ranks; first = next) {
    const int node = devices[first] / devices_per_node;
    while (next < ranks && devices[next] / devices_per_node == node) ++next;
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
      if (!worst || is_worse(placement, *worst)) worst = placement;
    }
  }
  return *worst;
}

GroupPlacement worst_placement_apart(const ProcessGrid& grid, Group group, int pipeline_rank, int devices_per_node) {
  const int stage = grid.tensor * grid.context * grid.data;
  std::optional<GroupPlacement> worst;
  for (int rank = pipeline_rank * stage; rank < (pipeline_rank + 1) * stage; ++rank) {
    if (!leads_group(grid, group, rank)) continue;
    const GroupPlacement placement = placement_of(devices_of(grid, group_ranks(grid, group, rank)), devices_per_node);
    if (!worst || is_worse(placement, *worst)) worst = placement;
  }
  return *worst;
}

}}  // namespace plumb::planner
