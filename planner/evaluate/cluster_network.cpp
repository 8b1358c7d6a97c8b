#include "planner/evaluate/cluster_network.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/forms/whole_number.h"
#include "schedules/nearest_name.h"
#include "simulator/network/placement/place_inner.h"
#include "simulator/network/placement/place_moves.h"
#include "simulator/network/topology/fabric.h"

namespace plumb { inline namespace planner {
namespace {

bool is_share(const std::optional<double>& value) {
  return value && *value >= 0 && *value <= 1;
}

void require_below(int number, int count, std::string_view what) {
  if (number < 0 || number >= count) {
    throw SpecError(fmt::format("{} {} does not exist: give 0 to {}", what, number, count - 1));
  }
}

FabricSpec fabric_spec(const ClusterSpec& cluster) {
  FabricSpec spec{.nodes = node_count(cluster),
                  .devices_per_node = cluster.devices_per_node,
                  .hub = cluster.wiring.hub,
                  .nics_per_node = nic_count(cluster),
                  .leaves = cluster.wiring.leaves,
                  .nodes_per_leaf = cluster.wiring.nodes_per_leaf,
                  .oversubscription = cluster.wiring.oversubscription};
  if (cluster.node_link) {
    spec.port_bytes_per_second = cluster.node_link->bytes_per_second * cluster.node_link->efficiency;
    spec.port_latency = cluster.node_link->latency;
  }
  if (cluster.network) {
    spec.nic_bytes_per_second = cluster.network->bytes_per_second * cluster.network->efficiency;
    spec.nic_latency = cluster.network->latency;
  }
  if (cluster.host && cluster.host->nic_shares_device_link)
    spec.attachment_bytes_per_second = cluster.host->device_bytes_per_second * cluster.host->device_efficiency;
  return spec;
}

/// The ways to the hosts; of a node of PCIe the port is the device's link to its host. No rate without a host.
HostLinks host_links(const ClusterSpec& cluster) {
  HostLinks links{.devices_per_node = cluster.devices_per_node};
  if (!cluster.host) return links;
  const HostSpec& host = *cluster.host;
  links.device_bytes_per_second = host.device_bytes_per_second * host.device_efficiency;
  links.memory_bytes_per_second = host.memory_bytes_per_second * host.memory_efficiency;
  links.devices_per_switch = host.devices_per_switch;
  if (host.nic_shares_device_link) links.link = DeviceLink::kAttachment;
  if (cluster.wiring.hub == NodeHub::kPcie && cluster.node_link) links.link = DeviceLink::kPort;
  return links;
}

/// The names of the links of one rank or node, both directions (simulator/network/topology/fabric.h), or the one that
/// is named. Throws SpecError if `links` has none of them.
std::set<std::string> names_of(const DegradedLinks& degraded, const ClusterSpec& cluster,
                               const std::vector<NetworkLink>& links) {
  if (degraded.kind == DegradedLinks::Kind::kLink) {
    std::vector<std::string> known;
    for (const NetworkLink& link : links) known.push_back(link.name);
    if (std::ranges::find(known, degraded.name) != known.end()) return {degraded.name};
    throw SpecError(fmt::format("there is no link {}: {}", degraded.name, did_you_mean(degraded.name, known)));
  }
  const bool nic = degraded.kind == DegradedLinks::Kind::kNic;
  if (nic && !cluster.network) throw SpecError(fmt::format("cluster {} has no NICs to degrade", cluster.name));
  const int per_node = cluster.devices_per_node;
  if (degraded.whole_node) {
    require_below(degraded.number, node_count(cluster), "node");
  } else {
    require_below(degraded.number, cluster.devices, "rank");
  }
  const int first = degraded.whole_node ? degraded.number * per_node : degraded.number;
  std::set<std::string> names;  // devices may share a NIC
  for (int device = first; device < first + (degraded.whole_node ? per_node : 1); ++device) {
    const int own_nic = device % per_node * nic_count(cluster) / per_node;
    const std::string place =
        nic ? fmt::format("node{}.{}", device / per_node, own_nic) : fmt::format("rank{}", device);
    names.insert(fmt::format("{}_up:{}", nic ? "nic" : "port", place));
    names.insert(fmt::format("{}_down:{}", nic ? "nic" : "port", place));
  }
  return names;
}

/// Scales links to what is left of them; returns those of which nothing is.
std::vector<int> degrade(NetworkSpec& network, const ClusterSpec& cluster, std::size_t fabric_links,
                         const std::vector<DegradedLinks>& all_degraded) {
  const std::vector<NetworkLink>& links = network.links;
  std::set<int> failed;
  for (const DegradedLinks& degraded : all_degraded) {
    const std::set<std::string> names = names_of(degraded, cluster, links);
    for (std::size_t l = 0; l < links.size(); ++l) {
      if (!names.contains(links[l].name)) continue;
      if (degraded.capacity == 0 && l >= fabric_links) {
        throw SpecError(
            fmt::format("without {} nothing leads to the host that activations are offloaded to: leave a share "
                        "of it, or offload nothing",
                        links[l].name));
      }
      if (degraded.capacity == 0) {
        failed.insert(static_cast<int>(l));
      } else {
        network.links[l].bytes_per_second *= degraded.capacity;
      }
    }
  }
  return {failed.begin(), failed.end()};
}

/// The data group's collective among the segments of (op, stage); nothing if there is none.
const Segment* data_collective(const CostTable& costs, Op op, int stage) {
  for (const auto& segments : costs.stages[stage].segments[static_cast<std::size_t>(op)]) {
    for (const Segment& segment : segments) {
      if (segment.kind == Segment::Kind::kCollective && segment.group == Group::kData) return &segment;
    }
  }
  return nullptr;
}

/// Returns the bytes/s that the price of a collective may count on over a link of which it moves `share` of its bytes: a
/// port, and of a NIC the shares of its own `devices` there. That leaves share trunks no price knows. Of a topology all
/// links, where NCCL's prices know better than a ring's.
double priced_rate(const NetworkLink& link, double share, double devices, const ClusterSpec& cluster, bool own_fabric) {
  const bool is_nic = own_fabric && link.name.starts_with("nic");
  const bool counted = own_fabric ? is_nic || link.name.starts_with("port") : cluster.nccl.has_value();
  if (!counted) return std::numeric_limits<double>::infinity();
  return link.bytes_per_second * (is_nic ? devices * nic_share(cluster) : 1) / share;
}

/// A collective moves no more over a link than the link carries in its price: trees and reducing switches move less
/// than the ring that the network takes them for.
void fit_volumes(NetworkSpec& network, const CostTable& costs, const ClusterSpec& cluster, bool own_fabric) {
  const auto most = [&](std::int32_t number, bool all_to_all) {
    double rate = std::numeric_limits<double>::infinity();
    const Route& route = network.routes[number];
    for (const LinkUse& use : route.uses) {
      // A device of a group leads one of its rings; of an exchange all of a NIC's devices are taken to be.
      const double devices = all_to_all ? 1 / nic_share(cluster) : use.share * route.weight;
      rate = std::min(rate, priced_rate(network.links[use.link], use.share, devices, cluster, own_fabric));
    }
    return rate;
  };
  for (CollectiveFlow& flow : network.collectives) {
    const Segment* segment = data_collective(costs, flow.op, flow.stage);
    if (flow.route == kNoRoute || segment == nullptr || segment->bytes == 0) continue;
    const double carried = most(flow.route, false) * segment->seconds.count();
    flow.volume_ratio = std::min(flow.volume_ratio, carried / static_cast<double>(segment->bytes));
  }
  for (InnerCollective& flow : network.inner)
    flow.most_bytes_per_second = most(flow.route, flow.kind == CollectiveKind::kAllToAll);
}

}  // namespace

SlowRank parse_slow_rank(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (text.starts_with("rank=") && colon != std::string_view::npos) {
    const auto rank = whole_number<int>(text.substr(5, colon - 5));
    const auto speed = whole_number<double>(text.substr(colon + 1));
    if (rank && is_share(speed) && *speed > 0) return {.world_rank = *rank, .speed = *speed};
  }
  throw SpecError(fmt::format(
      "slow \"{}\": write rank=NUMBER:SPEED with a share of the normal speed above 0 and at most 1, as in rank=17:0.8",
      text));
}

DegradedLinks parse_degraded_links(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::size_t equals = text.rfind('=');
  if (colon != std::string_view::npos && equals != std::string_view::npos && colon < equals) {
    const std::string_view kind = text.substr(0, colon);
    const std::string_view place = text.substr(colon + 1, equals - colon - 1);
    const bool node = place.starts_with("node");
    const auto number = whole_number<int>(place.substr(std::min<std::size_t>(4, place.size())));
    const auto capacity = whole_number<double>(text.substr(equals + 1));
    if (kind == "link" && !place.empty() && is_share(capacity))
      return {.kind = DegradedLinks::Kind::kLink, .name = std::string(place), .capacity = *capacity};
    const bool known =
        (kind == "nic" && (node || place.starts_with("rank"))) || (kind == "nvlink" && place.starts_with("rank"));
    if (known && number && is_share(capacity)) {
      return {.kind = kind == "nic" ? DegradedLinks::Kind::kNic : DegradedLinks::Kind::kPort,
              .whole_node = node,
              .number = *number,
              .capacity = *capacity};
    }
  }
  throw SpecError(fmt::format(
      "degrade \"{}\": write nic:nodeN=SHARE, nic:rankN=SHARE, nvlink:rankN=SHARE or link:NAME=SHARE with the "
      "share of the capacity that is left, from 0 (failed) to 1, as in nic:node3=0.5",
      text));
}

std::vector<double> rank_speeds(const ProcessGrid& grid, const std::vector<SlowRank>& slow) {
  if (slow.empty()) return {};
  const int replicas = world_size(grid) / grid.pipeline;
  std::vector<double> speeds(static_cast<std::size_t>(world_size(grid)), 1.0);
  for (const SlowRank& rank : slow) {
    require_below(rank.world_rank, world_size(grid), "rank");
    for (const int peer : group_ranks(grid, Group::kTensor, world_rank_on(grid, rank.world_rank))) {
      double& speed = speeds[static_cast<std::size_t>(peer % replicas) * grid.pipeline + peer / replicas];
      speed = std::min(speed, rank.speed);
    }
  }
  return speeds;
}

NetworkSpec cluster_network(const ClusterSpec& cluster, const ProcessGrid& grid, const InnerGrids& groups,
                            const Schedule& lowered, const CostTable& costs, const NetworkOptions& options) {
  const Fabric fabric = options.topology ? fabric_of(*options.topology) : fabric_of(fabric_spec(cluster));
  for (const DegradedLinks& degraded : options.degraded) {
    if (options.topology && degraded.kind != DegradedLinks::Kind::kLink)
      throw SpecError(
          "ports and NICs are those of the cluster's own fabric: name a link of the topology, as link:NAME");
  }
  const auto placed = [&](const Fabric& links) {
    NetworkSpec exchanged = with_inner_collectives(place(links, cluster.devices_per_node, grid, lowered, costs), links,
                                                   cluster.devices_per_node, groups, lowered, costs);
    return with_moves(std::move(exchanged), links, host_links(cluster), grid, lowered);
  };
  NetworkSpec network = placed(fabric);
  fit_volumes(network, costs, cluster, !options.topology);
  std::vector<int> failed = degrade(network, cluster, fabric.links.size(), options.degraded);
  if (!failed.empty() && !options.topology && !cluster.network) {  // a node alone has no NICs to go around over
    for (std::size_t l = 0; l < fabric.links.size(); ++l) {
      if (fabric.links[l].name.starts_with("nic")) failed.push_back(static_cast<int>(l));
    }
  }
  // Prices are those of the whole network; only the ways are others.
  if (!failed.empty()) {
    const Topology topology = options.topology ? *options.topology : fabric_topology(fabric_spec(cluster));
    network.routes = placed(without_links(fabric, topology, failed)).routes;
  }
  if (!options.share_links) {
    if (!options.degraded.empty()) {
      throw SpecError("links that share nothing cannot be degraded: let the links be shared");
    }
    for (Route& route : network.routes) route.uses.clear();
  }
  network.speeds = rank_speeds(grid, options.slow);
  network.collective_slowdown = cluster.device.collective_slowdown;
  return network;
}

}}  // namespace plumb::planner
