#include "simulator/network/placement/place_inner.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace simulator {
namespace {

bool is_inner(Group group) {
  return group == Group::kTensor || group == Group::kContext || group == Group::kExpert;
}

/// Returns the groups and kinds of the collectives inside the actions of a stage.
std::set<std::pair<Group, CollectiveKind>> inner_kinds(const StageCosts& stage) {
  std::set<std::pair<Group, CollectiveKind>> kinds;
  for (std::size_t op = 0; op < stage.segments.size(); ++op) {
    if (!is_compute(static_cast<Op>(op))) continue;
    for (const std::vector<Segment>& segments : stage.segments[op]) {
      for (const Segment& segment : segments) {
        if (segment.kind == Segment::Kind::kCollective && is_inner(segment.group) && segment.seconds.count() > 0)
          kinds.emplace(segment.group, segment.collective);
      }
    }
  }
  return kinds;
}

bool leads_inner_group(const InnerGrids& grids, Group group, int world_rank) {
  if (group == Group::kExpert) return leads_group(grids.experts, Group::kContext, world_rank);
  return leads_group(grids.ranks, group, world_rank);
}

}  // namespace

std::vector<int> inner_group_ranks(const InnerGrids& grids, Group group, int world_rank) {
  if (!is_inner(group)) {
    throw SpecError(
        fmt::format("no {} group works inside an action: name tensor, context or expert", group_name(group)));
  }
  if (group == Group::kExpert) return group_ranks(grids.experts, Group::kContext, world_rank);
  return group_ranks(grids.ranks, group, world_rank);
}

Route all_to_all_route(const Fabric& fabric, const std::vector<int>& devices) {
  if (devices.size() < 2) return {};
  std::vector<std::int32_t> crossed;
  for (const int from : devices) {
    for (const int to : devices) {
      if (from == to) continue;
      const std::vector<int> path = fabric.path(from, to);
      crossed.insert(crossed.end(), path.begin(), path.end());
    }
  }
  std::ranges::sort(crossed);
  const double part = 1.0 / static_cast<double>(devices.size() - 1);
  Route route;
  for (auto link = crossed.begin(); link != crossed.end();) {
    const auto next = std::upper_bound(link, crossed.end(), *link);
    route.uses.push_back({*link, static_cast<double>(next - link) * part});
    link = next;
  }
  return route;
}

NetworkSpec with_inner_collectives(NetworkSpec placed, const Fabric& fabric, int devices_per_node,
                                   const InnerGrids& grids, const Schedule& lowered, const CostTable& costs) {
  const int ranks = static_cast<int>(lowered.ranks.size());
  for (const ProcessGrid& grid : {grids.ranks, grids.experts}) {
    if (world_size(grid) != ranks * placed.replicas || grid.pipeline != ranks) {
      throw SpecError(
          fmt::format("the groups inside actions are of {} ranks in {} pipeline stages, the network of {} in "
                      "{}: give grids of the same ranks",
                      world_size(grid), grid.pipeline, ranks * placed.replicas, ranks));
    }
  }
  std::map<std::tuple<Group, bool, int>, std::int32_t> routes;  // by (group, all-to-all, first device)
  for (int stage = 0; stage < static_cast<int>(lowered.stages.size()); ++stage) {
    const int first = lowered.stages[stage].rank * placed.replicas;
    for (const auto& [group, kind] : inner_kinds(costs.stages[stage])) {
      const bool all_to_all = kind == CollectiveKind::kAllToAll;
      for (int k = 0; k < placed.replicas; ++k) {
        if (!leads_inner_group(grids, group, first + k)) continue;
        const std::vector<int> ranks = inner_group_ranks(grids, group, first + k);
        if (ranks.size() < 2) continue;
        const auto [route, added] =
            routes.try_emplace({group, all_to_all, first + k}, static_cast<std::int32_t>(placed.routes.size()));
        if (added) {
          const std::vector<int> devices = devices_of(grids.ranks, ranks);
          placed.routes.push_back(all_to_all ? all_to_all_route(fabric, devices)
                                             : ring_route(fabric, devices_per_node, devices));
        }
        InnerCollective flow{.group = group,
                             .kind = kind,
                             .stage = stage,
                             .route = route->second,
                             .volume_ratio = ring_volume_ratio(kind, static_cast<int>(ranks.size()))};
        for (const int rank : ranks) flow.replicas.push_back(rank - first);
        placed.inner.push_back(std::move(flow));
      }
    }
  }
  return placed;
}

}}  // namespace plumb::simulator
