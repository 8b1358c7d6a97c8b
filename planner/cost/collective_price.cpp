#include "planner/cost/collective_price.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "planner/cost/kernel_price.h"
#include "schedules/error.h"

namespace plumb {
namespace {

LinkCost effective(const LinkSpec& link) {
  return {.latency = link.latency, .bytes_per_second = link.bytes_per_second * link.efficiency};
}

double ring_bandwidth(const CollectivePrices& prices, const GroupPlacement& placement) {
  if (placement.nodes == 1) return prices.node.bytes_per_second;
  const double nics = prices.network.bytes_per_second * placement.ranks_per_node;
  return placement.ranks_per_node == 1 ? nics : std::min(prices.node.bytes_per_second, nics);
}

/// One way round the ring, n-1 hops, with `volume` bytes over each link.
Seconds ring_pass(const CollectivePrices& prices, const GroupPlacement& placement, double volume) {
  const int crossings = placement.nodes - 1;
  const int inside = placement.ranks - 1 - crossings;
  return inside * prices.node.latency + crossings * prices.network.latency +
         Seconds{volume / ring_bandwidth(prices, placement)};
}

Seconds all_to_all(const CollectivePrices& prices, const GroupPlacement& placement, double bytes) {
  const double share = bytes / placement.ranks;
  const double inside = share * (placement.ranks_per_node - 1);
  const double outside = share * (placement.ranks - placement.ranks_per_node);
  const Seconds latency = placement.nodes > 1 ? prices.network.latency : prices.node.latency;
  return (placement.ranks - 1) * latency +
         Seconds{std::max(inside / prices.node.bytes_per_second,
                          outside > 0 ? outside / prices.network.bytes_per_second : 0.0)};
}

}  // namespace

GroupPlacement placement_of(const std::vector<int>& world_ranks, int devices_per_node) {
  std::map<int, int> ranks_on;
  for (const int rank : world_ranks) ++ranks_on[rank / devices_per_node];
  int fewest = static_cast<int>(world_ranks.size());
  for (const auto& [node, count] : ranks_on) fewest = std::min(fewest, count);
  return {.ranks = static_cast<int>(world_ranks.size()),
          .nodes = static_cast<int>(ranks_on.size()),
          .ranks_per_node = fewest};
}

GroupPlacement worst_placement(const ProcessGrid& grid, Group group, int pipeline_rank, int devices_per_node) {
  assert(group == Group::kTensor || group == Group::kContext || group == Group::kData);
  const int block = grid.tensor * grid.context * grid.data;
  const int first = pipeline_rank * block;
  std::optional<GroupPlacement> worst;
  for (int rank = first; rank < first + block; ++rank) {
    const GridCoordinates at = coordinates_of(grid, rank);
    const int place = group == Group::kTensor ? at.tensor : group == Group::kContext ? at.context : at.data;
    if (place != 0) continue;  // not the first of its group
    const GroupPlacement placement = placement_of(group_ranks(grid, group, rank), devices_per_node);
    const auto badness = [](const GroupPlacement& p) { return std::tuple(p.nodes, -p.ranks_per_node); };
    if (!worst || badness(placement) > badness(*worst)) worst = placement;
  }
  return *worst;
}

CollectivePrices collective_prices(const ClusterSpec& cluster, int busy_ranks) {
  CollectivePrices prices;
  if (cluster.node_link) {
    prices.node = effective(*cluster.node_link);
  } else if (std::min(cluster.devices, cluster.devices_per_node) > 1) {
    throw SpecError(
        fmt::format("cluster {}: node.bandwidth_gb_per_s is missing: say how fast the {} devices of a node "
                    "exchange data, or give the cluster one device",
                    cluster.name, cluster.devices_per_node));
  }
  if (cluster.network) {
    prices.network = effective(*cluster.network);
  } else if (node_count(cluster) > 1) {
    throw SpecError(
        fmt::format("cluster {}: network is missing: say what connects its {} nodes, or use at most {} devices",
                    cluster.name, node_count(cluster), cluster.devices_per_node));
  }
  for (const KernelSample& sample : samples_of(cluster, "all_reduce", busy_ranks)) {
    if (sample.shape[1] < 2) continue;
    const auto ranks = static_cast<int>(sample.shape[1]);
    const GroupPlacement placement{.ranks = ranks, .nodes = 1, .ranks_per_node = ranks};
    const Seconds modelled =
        collective_time({.node = prices.node}, placement, CollectiveKind::kAllReduce, sample.shape[0]);
    if (modelled.count() > 0) {
      prices.all_reduce.push_back(shape_correction(sample.shape, sample.median.count(), modelled.count()));
    }
  }
  return prices;
}

Seconds collective_time(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                        std::int64_t bytes) {
  if (placement.ranks == 1) return Seconds{0};
  const auto buffer = static_cast<double>(bytes);
  const double share = buffer * (placement.ranks - 1) / placement.ranks;
  switch (kind) {
    case CollectiveKind::kAllReduce: {
      const Seconds ring = 2 * ring_pass(prices, placement, share);
      return placement.nodes == 1 ? ring * correction_factor(prices.all_reduce, {bytes, placement.ranks}) : ring;
    }
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return ring_pass(prices, placement, share);
    case CollectiveKind::kBroadcast:
      return ring_pass(prices, placement, buffer);
    case CollectiveKind::kAllToAll:
      return all_to_all(prices, placement, buffer);
  }
  return Seconds{0};
}

LinkCost pipeline_link(const CollectivePrices& prices, const ProcessGrid& grid, int source_rank, int destination_rank,
                       int devices_per_node) {
  const int block = grid.tensor * grid.context * grid.data;
  for (int i = 0; i < block; ++i) {
    const int source_node = (source_rank * block + i) / devices_per_node;
    if (source_node != (destination_rank * block + i) / devices_per_node) return prices.network;
  }
  return prices.node;
}

}  // namespace plumb
