#pragma once
// The network of a cluster from a few numbers: nodes of devices on NVLink switches or PCIe, NICs, leaves and a spine.
//
//   device - port up/down - hub (NVSwitch, or the PCIe host)          within a node
//   device - NIC up/down - leaf - trunk up/down - spine               between nodes
//
// Device d of a node uses NIC d * nics / devices of it. Behind an NVSwitch a NIC is beside the device's port; on a PCIe
// node the traffic to the NIC crosses the device's port as well. A leaf serves the NICs of one rail (the NICs of equal
// number, Wang et al. 2023, "Rail-only") or all NICs of `nodes_per_leaf` nodes; its trunk to the spine carries all its
// NICs' rate divided by the oversubscription.

#include <functional>
#include <limits>
#include <vector>

#include "simulator/network/topology/topology.h"

namespace plumb { inline namespace simulator {

/// The connection between the devices of a node. A mesh has a link for each pair; its devices are taken here to share
/// nothing but their ports, as on switches.
enum class NodeHub { kNvSwitch, kPcie, kMesh };
enum class Leaves { kByRail, kByNode };

struct FabricSpec {
  int nodes = 1;
  int devices_per_node = 1;
  NodeHub hub = NodeHub::kNvSwitch;
  double port_bytes_per_second = 0;  ///< a device's link into its node, each way
  /// A device's own link to the PCIe switch that its NIC hangs on, each way: traffic to the NIC crosses it.
  double attachment_bytes_per_second = std::numeric_limits<double>::infinity();
  int nics_per_node = 1;            ///< between 1 and devices_per_node
  double nic_bytes_per_second = 0;  ///< each way
  Leaves leaves = Leaves::kByRail;
  int nodes_per_leaf = 0;       ///< 0 for all nodes
  double oversubscription = 1;  ///< NIC rate of a leaf over the rate of its trunk
  Seconds port_latency{0};      ///< latency from port to port
  Seconds nic_latency{0};       ///< latency from NIC to NIC
  Seconds spine_latency{0};     ///< added where the path crosses the spine
};

/// Returns a path: the links from one device to another, in order.
using PathOf = std::function<std::vector<int>(int from_device, int to_device)>;

/// Links and their paths, of a FabricSpec or of a graph of the user's own.
struct Fabric {
  int devices = 0;
  std::vector<TopologyLink> links;
  PathOf path;
};

/// Returns the graph of a spec. Links are named "port_up:rank3", "nic_down:node2.1", "trunk_up:leaf0". Throws SpecError
/// if a number is not above 0 or nics_per_node exceeds devices_per_node.
Topology fabric_topology(const FabricSpec& spec);

/// Returns the links of fabric_topology(spec) from one device to another without a search; equal to shortest_path() on
/// it.
std::vector<int> fabric_path(const FabricSpec& spec, int from_device, int to_device);

Fabric fabric_of(const FabricSpec& spec);

/// Returns the fabric with some links that carry nothing: traffic that would cross one goes the shortest other way.
/// `topology` is the graph of `fabric`, `failed` its links by number. When asked for a path where none is left, it
/// throws SpecError naming the two ranks.
Fabric without_links(const Fabric& fabric, const Topology& topology, const std::vector<int>& failed);

/// Returns a fabric whose paths are those of shortest_path(). Throws SpecError as check_topology().
Fabric fabric_of(const Topology& topology);

}}  // namespace plumb::simulator
