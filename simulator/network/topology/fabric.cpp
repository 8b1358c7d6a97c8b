#include "simulator/network/topology/fabric.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace simulator {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

void check(const FabricSpec& spec) {
  const auto require = [](bool holds, const char* what, auto value, const char* remedy) {
    if (!holds) throw SpecError(fmt::format("the network has {} {}: give {}", value, what, remedy));
  };
  require(spec.nodes > 0, "nodes", spec.nodes, "1 or more");
  require(spec.devices_per_node > 0, "devices a node", spec.devices_per_node, "1 or more");
  require(spec.nics_per_node > 0 && spec.nics_per_node <= spec.devices_per_node, "NICs a node", spec.nics_per_node,
          "1 to as many as devices");
  require(spec.nodes_per_leaf >= 0, "nodes a leaf", spec.nodes_per_leaf, "1 or more, or 0 for all");
  require(spec.port_bytes_per_second > 0 || spec.devices_per_node == 1, "bytes/s at a device's port",
          spec.port_bytes_per_second, "a rate above 0");
  require(spec.attachment_bytes_per_second > 0, "bytes/s between a device and its NIC",
          spec.attachment_bytes_per_second, "a rate above 0");
  require(spec.nic_bytes_per_second > 0 || spec.nodes == 1, "bytes/s at a NIC", spec.nic_bytes_per_second,
          "a rate above 0");
  require(spec.oversubscription > 0, "as oversubscription", spec.oversubscription, "a ratio above 0");
}

/// Numbers of vertices and links, both in blocks by kind.
struct Numbers {
  int devices, nics, leaves, groups, nodes_per_leaf;

  explicit Numbers(const FabricSpec& spec)
      : devices(spec.nodes * spec.devices_per_node),
        nics(spec.nodes * spec.nics_per_node),
        nodes_per_leaf(spec.nodes_per_leaf == 0 ? spec.nodes : spec.nodes_per_leaf) {
    groups = (spec.nodes + nodes_per_leaf - 1) / nodes_per_leaf;
    leaves = groups * (spec.leaves == Leaves::kByRail ? spec.nics_per_node : 1);
  }
  // Links come in pairs (there, back), in this order.
  int attachment(int device) const { return 2 * device; }
  int nic(int number) const { return 2 * (devices + number); }
  int trunk(int leaf) const { return 2 * (devices + nics + leaf); }
  int port(int device) const { return 2 * (devices + nics + leaves + device); }
  // Vertices stand in the order devices, hubs, NICs, leaves, spine.
  int hub_vertex(int node) const { return devices + node; }
  int nic_vertex(const FabricSpec& spec, int number) const { return devices + spec.nodes + number; }
  int leaf_vertex(const FabricSpec& spec, int leaf) const { return devices + spec.nodes + nics + leaf; }
  int spine_vertex(const FabricSpec& spec) const { return devices + spec.nodes + nics + leaves; }
};

int nic_of(const FabricSpec& spec, int device) {
  const int node = device / spec.devices_per_node;
  return node * spec.nics_per_node + device % spec.devices_per_node * spec.nics_per_node / spec.devices_per_node;
}

int leaf_of(const FabricSpec& spec, const Numbers& numbers, int nic) {
  const int group = nic / spec.nics_per_node / numbers.nodes_per_leaf;
  return spec.leaves == Leaves::kByRail ? group * spec.nics_per_node + nic % spec.nics_per_node : group;
}

}  // namespace

Topology fabric_topology(const FabricSpec& spec) {
  check(spec);
  const Numbers numbers(spec);
  Topology topology;
  for (int d = 0; d < numbers.devices; ++d) {
    topology.vertices.push_back(fmt::format("rank{}", d));
    topology.devices.push_back(d);
  }
  for (int n = 0; n < spec.nodes; ++n) topology.vertices.push_back(fmt::format("hub{}", n));
  for (int n = 0; n < numbers.nics; ++n) {
    topology.vertices.push_back(fmt::format("nic{}.{}", n / spec.nics_per_node, n % spec.nics_per_node));
  }
  for (int leaf = 0; leaf < numbers.leaves; ++leaf) topology.vertices.push_back(fmt::format("leaf{}", leaf));
  topology.vertices.emplace_back("spine");

  const auto both_ways = [&](const std::string& kind, const std::string& place, int near, int far, double rate,
                             Seconds latency) {
    // The latency of a crossing is split over the two links that it takes.
    topology.links.push_back({fmt::format("{}_up:{}", kind, place), near, far, rate, latency / 2});
    topology.links.push_back({fmt::format("{}_down:{}", kind, place), far, near, rate, latency / 2});
  };
  for (int d = 0; d < numbers.devices; ++d) {
    const int near = spec.hub == NodeHub::kPcie ? numbers.hub_vertex(d / spec.devices_per_node) : d;
    both_ways("attachment", fmt::format("rank{}", d), near, numbers.nic_vertex(spec, nic_of(spec, d)),
              spec.attachment_bytes_per_second, Seconds{0});
  }
  const double nic_rate = spec.nodes == 1 && !(spec.nic_bytes_per_second > 0) ? kUnlimited : spec.nic_bytes_per_second;
  for (int n = 0; n < numbers.nics; ++n) {
    both_ways("nic", fmt::format("node{}.{}", n / spec.nics_per_node, n % spec.nics_per_node),
              numbers.nic_vertex(spec, n), numbers.leaf_vertex(spec, leaf_of(spec, numbers, n)), nic_rate,
              spec.nic_latency);
  }
  const int nics_of_leaf = numbers.nodes_per_leaf * (spec.leaves == Leaves::kByRail ? 1 : spec.nics_per_node);
  for (int leaf = 0; leaf < numbers.leaves; ++leaf) {
    both_ways("trunk", fmt::format("leaf{}", leaf), numbers.leaf_vertex(spec, leaf), numbers.spine_vertex(spec),
              nic_rate * nics_of_leaf / spec.oversubscription, spec.spine_latency);
  }
  const double port_rate =
      spec.devices_per_node == 1 && !(spec.port_bytes_per_second > 0) ? kUnlimited : spec.port_bytes_per_second;
  for (int d = 0; d < numbers.devices; ++d) {
    both_ways("port", fmt::format("rank{}", d), d, numbers.hub_vertex(d / spec.devices_per_node), port_rate,
              spec.port_latency);
  }
  return topology;
}

std::vector<int> fabric_path(const FabricSpec& spec, int from_device, int to_device) {
  const Numbers numbers(spec);
  for (const int device : {from_device, to_device}) {
    if (device < 0 || device >= numbers.devices) {
      throw SpecError(fmt::format("rank {} is not in the network: give 0 to {}", device, numbers.devices - 1));
    }
  }
  if (from_device == to_device) return {};
  if (from_device / spec.devices_per_node == to_device / spec.devices_per_node) {
    return {numbers.port(from_device), numbers.port(to_device) + 1};
  }
  const int from_nic = nic_of(spec, from_device);
  const int to_nic = nic_of(spec, to_device);
  const int from_leaf = leaf_of(spec, numbers, from_nic);
  const int to_leaf = leaf_of(spec, numbers, to_nic);
  std::vector<int> path;
  if (spec.hub == NodeHub::kPcie) path.push_back(numbers.port(from_device));
  path.push_back(numbers.attachment(from_device));
  path.push_back(numbers.nic(from_nic));
  if (from_leaf != to_leaf) {
    path.push_back(numbers.trunk(from_leaf));
    path.push_back(numbers.trunk(to_leaf) + 1);
  }
  path.push_back(numbers.nic(to_nic) + 1);
  path.push_back(numbers.attachment(to_device) + 1);
  if (spec.hub == NodeHub::kPcie) path.push_back(numbers.port(to_device) + 1);
  return path;
}

Fabric fabric_of(const FabricSpec& spec) {
  Topology topology = fabric_topology(spec);
  return {.devices = static_cast<int>(topology.devices.size()),
          .links = std::move(topology.links),
          .path = [spec](int from, int to) { return fabric_path(spec, from, to); }};
}

Fabric without_links(const Fabric& fabric, const Topology& topology, const std::vector<int>& failed) {
  struct Rest {
    Topology topology;
    std::vector<int> number;         // [link of the rest] its number in the whole
    std::vector<bool> is_lost;       // [link of the whole] true if it carries nothing
    std::vector<std::string> names;  // [link of the whole] its name
    PathOf usual;
  };
  Rest rest{.topology = topology, .is_lost = std::vector<bool>(topology.links.size(), false), .usual = fabric.path};
  for (const int link : failed) rest.is_lost[link] = true;
  rest.topology.links.clear();
  for (int link = 0; link < static_cast<int>(topology.links.size()); ++link) {
    rest.names.push_back(topology.links[link].name);
    if (rest.is_lost[link]) continue;
    rest.topology.links.push_back(topology.links[link]);
    rest.number.push_back(link);
  }
  Fabric remaining = fabric;
  remaining.path = [shared = std::make_shared<const Rest>(std::move(rest))](int from, int to) {
    std::vector<int> path = shared->usual(from, to);
    const auto lost = std::ranges::find_if(path, [&](int link) { return shared->is_lost[link]; });
    if (lost == path.end()) return path;
    const std::string& name = shared->names[*lost];
    try {
      path = shortest_path(shared->topology, from, to);
    } catch (const SpecError&) {
      throw SpecError(
          fmt::format("without {} nothing leads from rank {} to rank {}, which exchange data: leave a link "
                      "between them, or use other ranks",
                      name, from, to));
    }
    for (int& link : path) link = shared->number[link];
    return path;
  };
  return remaining;
}

Fabric fabric_of(const Topology& topology) {
  check_topology(topology);
  const auto shared = std::make_shared<const Topology>(topology);
  return {.devices = static_cast<int>(topology.devices.size()),
          .links = topology.links,
          .path = [shared](int from, int to) { return shortest_path(*shared, from, to); }};
}

}}  // namespace plumb::simulator
