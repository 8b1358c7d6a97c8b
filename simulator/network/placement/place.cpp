#include "simulator/network/placement/place.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace simulator {
namespace {

/// Adds `share` to each link on the way.
void add_way(std::map<int, double>& shares, const Fabric& fabric, int from, int to, double share) {
  for (const int link : fabric.path(from, to)) shares[link] += share;
}

Route route_of(const std::map<int, double>& shares, double weight) {
  Route route{.weight = weight};
  for (const auto& [link, share] : shares) route.uses.push_back({link, share});
  return route;
}

/// Returns the first collective of the data group among the segments of (op, stage), or null.
const Segment* data_collective(const CostTable& costs, Op op, int stage) {
  for (const auto& segments : costs.stages[stage].segments[static_cast<std::size_t>(op)]) {
    for (const Segment& segment : segments) {
      if (segment.kind == Segment::Kind::kCollective && segment.group == Group::kData) return &segment;
    }
  }
  return nullptr;
}

class Placer {
 public:
  Placer(const Fabric& fabric, int devices_per_node, const ProcessGrid& grid, const Schedule& lowered,
         const CostTable& costs)
      : fabric_(fabric), devices_per_node_(devices_per_node), grid_(grid), schedule_(lowered), costs_(costs) {
    network_.replicas = world_size(grid) / grid.pipeline;
    for (const TopologyLink& link : fabric.links) network_.links.push_back({link.name, link.bytes_per_second});
  }

  NetworkSpec place() {
    const StageNeighbors neighbors = stage_neighbors(schedule_);
    for (int k = 0; k < network_.replicas; ++k) {
      for (std::size_t s = 0; s < schedule_.stages.size(); ++s) {
        network_.activation_route.push_back(message_route(k, static_cast<int>(s), neighbors.successor[s]));
        network_.gradient_route.push_back(message_route(k, static_cast<int>(s), neighbors.predecessor[s]));
      }
    }
    for (int s = 0; s < static_cast<int>(schedule_.stages.size()); ++s) {
      for (const Op op : {Op::kUnshard, Op::kReduceGrad}) {
        if (const Segment* segment = data_collective(costs_, op, s)) place_collective(op, s, *segment);
      }
    }
    return std::move(network_);
  }

 private:
  std::int32_t message_route(int replica, int stage, int other) {
    if (other < 0 || schedule_.stages[other].rank == schedule_.stages[stage].rank) return kNoRoute;
    const int from = device_of(grid_, schedule_.stages[stage].rank * network_.replicas + replica);
    const int to = device_of(grid_, schedule_.stages[other].rank * network_.replicas + replica);
    const auto [it, added] = message_routes_.try_emplace({from, to}, static_cast<std::int32_t>(network_.routes.size()));
    if (added) {
      std::map<int, double> shares;
      add_way(shares, fabric_, from, to, 1);
      network_.routes.push_back(route_of(shares, 1));
    }
    return it->second;
  }

  /// Returns the stages whose rings are one flow: a REDUCE_GRAD of copies has the rings of all copies side by side.
  std::vector<int> copies_of(Op op, int stage) const {
    if (op != Op::kReduceGrad) return {stage};
    std::vector<int> copies;
    for (int s = 0; s < static_cast<int>(schedule_.stages.size()); ++s) {
      if (schedule_.stages[s].model_part == schedule_.stages[stage].model_part) copies.push_back(s);
    }
    return copies;
  }

  void place_collective(Op op, int stage, const Segment& segment) {
    const int rank = schedule_.stages[stage].rank;
    for (int k = 0; k < network_.replicas; ++k) {
      const int first = rank * network_.replicas + k;
      if (!leads_group(grid_, Group::kContext, first)) continue;
      const std::vector<int> group = group_ranks(grid_, Group::kContext, first);
      CollectiveFlow flow{.op = op,
                          .stage = stage,
                          .volume_ratio = ring_volume_ratio(segment.collective, static_cast<int>(group.size()))};
      for (const int world_rank : group) flow.replicas.push_back(world_rank - rank * network_.replicas);
      if (group.size() > 1) flow.route = ring_route_of(copies_of(op, stage), flow.replicas);
      network_.collectives.push_back(std::move(flow));
    }
  }

  std::int32_t ring_route_of(const std::vector<int>& stages, const std::vector<int>& replicas) {
    std::vector<int> first_devices;
    for (const int stage : stages)
      first_devices.push_back(schedule_.stages[stage].rank * network_.replicas + replicas.front());
    const auto [it, added] = ring_routes_.try_emplace(first_devices, static_cast<std::int32_t>(network_.routes.size()));
    if (!added) return it->second;
    std::map<int, double> shares;
    double weight = 1;
    for (const int stage : stages) {
      std::vector<int> devices;
      for (const int replica : replicas) devices.push_back(schedule_.stages[stage].rank * network_.replicas + replica);
      const Route ring = ring_route(fabric_, devices_per_node_, devices_of(grid_, std::move(devices)));
      for (const LinkUse& use : ring.uses) shares[use.link] += use.share;
      weight = ring.weight;
    }
    network_.routes.push_back(route_of(shares, weight));
    return it->second;
  }

  const Fabric& fabric_;
  int devices_per_node_;
  const ProcessGrid& grid_;
  const Schedule& schedule_;
  const CostTable& costs_;
  NetworkSpec network_;
  std::map<std::pair<int, int>, std::int32_t> message_routes_;  ///< by the two devices
  std::map<std::vector<int>, std::int32_t> ring_routes_;        ///< by the first device of each copy's group
};

}  // namespace

Route ring_route(const Fabric& fabric, int devices_per_node, const std::vector<int>& devices) {
  if (devices.size() < 2) return {};
  std::map<int, std::vector<int>> by_node;
  for (const int device : devices) by_node[device / devices_per_node].push_back(device);
  std::vector<std::vector<int>> nodes;
  std::size_t rings = devices.size();
  for (auto& [node, members] : by_node) {
    rings = std::min(rings, members.size());
    nodes.push_back(std::move(members));
  }
  std::map<int, double> shares;
  if (nodes.size() == 1) {
    for (std::size_t i = 0; i < devices.size(); ++i)
      add_way(shares, fabric, devices[i], devices[(i + 1) % devices.size()], 1);
    return route_of(shares, 1);
  }
  const double part = 1.0 / static_cast<double>(rings);
  for (std::size_t ring = 0; ring < rings; ++ring) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const std::vector<int>& members = nodes[n];
      for (std::size_t i = 0; i + 1 < members.size(); ++i) {
        add_way(shares, fabric, members[(ring + i) % members.size()], members[(ring + i + 1) % members.size()], part);
      }
      add_way(shares, fabric, members[ring], nodes[(n + 1) % nodes.size()][ring], part);
    }
  }
  return route_of(shares, static_cast<double>(rings));
}

double ring_volume_ratio(CollectiveKind kind, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * share;
    case CollectiveKind::kBroadcast:
      return 1;
    default:
      return share;
  }
}

NetworkSpec place(const Fabric& fabric, int devices_per_node, const ProcessGrid& grid, const Schedule& lowered,
                  const CostTable& costs) {
  if (world_size(grid) > fabric.devices) {
    throw SpecError(fmt::format("the layout has {} ranks, but the network connects {} devices: use fewer ranks",
                                world_size(grid), fabric.devices));
  }
  if (grid.pipeline != static_cast<int>(lowered.ranks.size())) {
    throw SpecError(fmt::format("the layout has {} pipeline ranks, the schedule {}: give the same number",
                                grid.pipeline, lowered.ranks.size()));
  }
  return Placer(fabric, devices_per_node, grid, lowered, costs).place();
}

}}  // namespace plumb::simulator
