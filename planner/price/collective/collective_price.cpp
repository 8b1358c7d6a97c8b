#include "planner/price/collective/collective_price.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "planner/price/collective/nccl_point_to_point.h"
#include "planner/price/collective/nccl_tuning.h"
#include "planner/price/kernel/kernel_price.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

LinkCost effective(const LinkSpec& link) {
  return {.latency = link.latency, .bytes_per_second = link.bytes_per_second * link.efficiency};
}

/// Returns the rate at which a device exchanges bytes with `others` of its node at once.
double inside_bandwidth(const CollectivePrices& prices, int others) {
  if (prices.mesh_devices < 2) return prices.node.bytes_per_second;
  return prices.node.bytes_per_second * std::min(1.0, static_cast<double>(others) / (prices.mesh_devices - 1));
}

double ring_bandwidth(const CollectivePrices& prices, const GroupPlacement& placement) {
  if (placement.nodes == 1) return inside_bandwidth(prices, placement.ranks - 1);
  const double nics = prices.network.bytes_per_second * placement.ranks_per_node;
  if (placement.ranks_per_node == 1) return nics;
  return std::min(inside_bandwidth(prices, placement.ranks_per_node - 1), nics);
}

/// Returns the time of one way round the ring, n-1 hops, with `volume` bytes over each link.
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
         Seconds{std::max(inside > 0 ? inside / inside_bandwidth(prices, placement.ranks_per_node - 1) : 0.0,
                          outside > 0 ? outside / prices.network.bytes_per_second : 0.0)};
}

/// Returns the time by the alpha-beta model on rings.
Seconds ring_time(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                  std::int64_t bytes) {
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
    default:
      assert(is_priced(kind));
  }
  return Seconds{0};
}

PricedCollective modelled(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                          std::int64_t bytes) {
  if (!prices.nccl) return {.time = ring_time(prices, placement, kind, bytes), .algorithm = "ring"};
  const NcclCalibration& calibration = prices.nccl->spec.calibration;
  if (kind == CollectiveKind::kAllToAll) {
    const NcclEstimate estimate = nccl_all_to_all(*prices.nccl, placement, bytes);
    return {.time = calibrated(calibration, estimate),
            .algorithm = "pairwise",
            .protocol = protocol_name(estimate.protocol)};
  }
  const NcclEstimate chosen = nccl_choice(nccl_tuning(*prices.nccl, placement, kind), bytes);
  return {.time = calibrated(calibration, chosen),
          .algorithm = algorithm_name(chosen.algorithm),
          .protocol = protocol_name(chosen.protocol)};
}

const CollectiveTable* table_of(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind) {
  const auto found = std::ranges::find_if(prices.tables, [&](const CollectiveTable& table) {
    return table.kind == kind && table.ranks == placement.ranks && table.nodes == placement.nodes;
  });
  return found == prices.tables.end() ? nullptr : &*found;
}

/// Interpolates between two measured sizes: a straight line of log time over log bytes.
Seconds interpolated(const CollectiveTable& table, std::int64_t bytes) {
  const auto above = std::ranges::lower_bound(table.bytes, bytes) - table.bytes.begin();
  if (table.bytes[above] == bytes) return table.times[above];
  const double low = std::log(static_cast<double>(table.bytes[above - 1]));
  const double high = std::log(static_cast<double>(table.bytes[above]));
  const double part = (std::log(static_cast<double>(bytes)) - low) / (high - low);
  return Seconds{
      std::exp(std::log(table.times[above - 1].count()) * (1 - part) + std::log(table.times[above].count()) * part)};
}

}  // namespace

CollectivePrices collective_prices(const ClusterSpec& cluster, int busy_ranks) {
  CollectivePrices prices;
  if (cluster.wiring.hub == NodeHub::kMesh) prices.mesh_devices = cluster.devices_per_node;
  if (cluster.node_link) {
    prices.node = effective(*cluster.node_link);
  } else if (std::min(cluster.devices, cluster.devices_per_node) > 1) {
    throw SpecError(
        fmt::format("cluster {}: node.bandwidth_gb_per_s is missing: say how fast the {} devices of a node "
                    "exchange data, or give the cluster one device",
                    cluster.name, cluster.devices_per_node));
  }
  if (cluster.network) {
    prices.nic = prices.network = effective(*cluster.network);
    prices.network.bytes_per_second *= nic_share(cluster);
    if (cluster.wiring.hub == NodeHub::kPcie && cluster.node_link) {  // NICs are behind the devices' ports
      for (double* rate : {&prices.nic.bytes_per_second, &prices.network.bytes_per_second})
        *rate = std::min(*rate, prices.node.bytes_per_second);
    }
  } else if (node_count(cluster) > 1) {
    throw SpecError(
        fmt::format("cluster {}: network is missing: say what connects its {} nodes, or use at most {} devices",
                    cluster.name, node_count(cluster), cluster.devices_per_node));
  }
  for (const KernelSample& sample : samples_of(cluster, "all_reduce", busy_ranks)) {
    if (sample.shape[1] < 2) continue;
    const auto ranks = static_cast<int>(sample.shape[1]);
    const GroupPlacement placement{.ranks = ranks, .nodes = 1, .ranks_per_node = ranks};
    const Seconds modelled = ring_time({.node = prices.node, .mesh_devices = prices.mesh_devices}, placement,
                                       CollectiveKind::kAllReduce, sample.shape[0]);
    if (modelled.count() > 0) {
      prices.all_reduce.push_back(shape_correction(sample.shape, sample.median.count(), modelled.count()));
    }
  }
  prices.nccl = nccl_machine(cluster);
  prices.tables = cluster.collective_tables;
  return prices;
}

std::optional<NcclMachine> nccl_machine(const ClusterSpec& cluster) {
  if (!cluster.nccl) return std::nullopt;
  NcclMachine machine{.spec = *cluster.nccl, .devices_per_node = cluster.devices_per_node, .nics = nic_count(cluster)};
  if (cluster.node_link) machine.link_bytes_per_second = cluster.node_link->bytes_per_second;
  if (cluster.network) machine.nic_bytes_per_second = cluster.network->bytes_per_second * nic_count(cluster);
  // A copy reads and writes.
  machine.copy_bytes_per_second = cluster.device.memory_bytes_per_second * cluster.device.memory_efficiency / 2;
  return machine;
}

PricedCollective price_collective(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                                  std::int64_t bytes) {
  if (placement.ranks == 1) return {};
  const CollectiveTable* table = table_of(prices, placement, kind);
  if (table == nullptr) return modelled(prices, placement, kind, bytes);
  const std::int64_t nearest = std::clamp(bytes, table->bytes.front(), table->bytes.back());
  Seconds time = interpolated(*table, nearest);
  if (nearest != bytes) {
    time *= modelled(prices, placement, kind, bytes).time / modelled(prices, placement, kind, nearest).time;
  }
  return {.time = time, .algorithm = "measured"};
}

Seconds collective_time(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                        std::int64_t bytes) {
  return price_collective(prices, placement, kind, bytes).time;
}

Seconds CollectiveTimes::operator()(const CollectivePrices& prices, const GroupPlacement& placement,
                                    CollectiveKind kind, std::int64_t bytes) {
  const bool by_nccl = prices.nccl && placement.ranks > 1 && kind != CollectiveKind::kAllToAll;
  if (!by_nccl || table_of(prices, placement, kind) != nullptr) return collective_time(prices, placement, kind, bytes);
  const NcclTuning& tuning = tunings_.of({kind, placement}, [&] { return nccl_tuning(*prices.nccl, placement, kind); });
  return calibrated(prices.nccl->spec.calibration, nccl_choice(tuning, bytes));
}

LinkCost pipeline_link(const CollectivePrices& prices, const DeviceRange& source, const DeviceRange& destination,
                       int devices_per_node, int tensor) {
  const int most = std::max(source.count, destination.count);
  const bool alike = source.count == destination.count && source.together == destination.together &&
                     source.stride == destination.stride;
  const int row = source.together == 0 ? 1 : source.together, step = source.together == 0 ? 1 : source.stride;
  // Devices of runs that are alike stand at the same places of their nodes again after so many.
  const int period = alike ? row * (devices_per_node / std::gcd(step, devices_per_node)) : most;
  for (int i = 0; i < std::min(most, period); ++i) {
    const int source_node = source.at(i * source.count / most) / devices_per_node;
    if (source_node != destination.at(i * destination.count / most) / devices_per_node)
      return {.latency = prices.nic.latency,
              .bytes_per_second = std::max(prices.network.bytes_per_second, prices.nic.bytes_per_second / tensor)};
  }
  return {.latency = prices.node.latency, .bytes_per_second = inside_bandwidth(prices, 1)};
}

}}  // namespace plumb::planner
