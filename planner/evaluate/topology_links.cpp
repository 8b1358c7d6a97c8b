#include "planner/evaluate/topology_links.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/evaluate/pipeline_hops.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

LinkCost path_cost(const Topology& topology, int from_device, int to_device) {
  const std::vector<int> path = shortest_path(topology, from_device, to_device);
  LinkCost cost{.latency = path_latency(topology, path)};
  for (const int link : path)
    cost.bytes_per_second = std::min(cost.bytes_per_second, topology.links[link].bytes_per_second);
  return cost;
}

LinkCost link_of_replicas(const Topology& topology, const ProcessGrid& grid, int from_rank, int to_rank) {
  const int replicas = world_size(grid) / grid.pipeline;
  LinkCost link{.latency = Seconds{0}, .bytes_per_second = 0};
  for (int replica = 0; replica < replicas; ++replica) {
    const LinkCost cost = path_cost(topology, device_of(grid, from_rank * replicas + replica),
                                    device_of(grid, to_rank * replicas + replica));
    link.latency = std::max(link.latency, cost.latency);
    link.bytes_per_second = std::max(link.bytes_per_second, cost.bytes_per_second);
  }
  return link;
}

}  // namespace

CostTable with_topology_links(CostTable costs, const Topology& topology, const ProcessGrid& grid,
                              const Schedule& schedule) {
  const int ranks = world_size(grid);
  if (ranks > static_cast<int>(topology.devices.size())) {
    throw SpecError(
        fmt::format("the layout has {} ranks, but the topology {} devices: rank {} hangs nowhere; name more "
                    "devices",
                    ranks, topology.devices.size(), topology.devices.size()));
  }
  for (const auto& [source, destination] : pipeline_hops(schedule)) {
    costs.links[{source, destination}] = link_of_replicas(topology, grid, source, destination);
  }
  return costs;
}

}}  // namespace plumb::planner
