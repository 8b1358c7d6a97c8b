#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "planner/calibrate/machine_topology.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// A device has at most so many NVLinks: NVLink 4 and 5 (NVIDIA, H100 and B200 data sheets).
constexpr int kMostNvLinks = 18;

/// Returns the fewest NVLinks between two GPUs; 0 if a pair has none.
int links_of_all_pairs(const MachineTopology& found) {
  int links = kMostNvLinks;
  for (std::size_t a = 0; a < found.gpus.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const DevicePath& path = found.between_gpus[a][b];
      links = std::min(links, path.kind == PathKind::kNvLink ? path.links : 0);
    }
  return links;
}

/// Returns the slowest figure of all GPUs; nothing if one is not known.
std::optional<double> slowest(const std::vector<TopologyGpu>& gpus, double TopologyGpu::*figure) {
  double least = gpus.front().*figure;
  for (const TopologyGpu& gpu : gpus) least = std::min(least, gpu.*figure);
  return least > 0 ? std::optional(least) : std::nullopt;
}

/// Returns the NICs that a GPU reaches without leaving its PCIe switch; all of them if there is none.
std::vector<TopologyNic> near_nics(const MachineTopology& found) {
  std::vector<TopologyNic> near;
  for (std::size_t nic = 0; nic < found.nics.size(); ++nic)
    if (std::ranges::any_of(found.to_nics, [&](const std::vector<DevicePath>& paths) {
          return paths[nic].kind == PathKind::kOneBridge || paths[nic].kind == PathKind::kBridges;
        }))
      near.push_back(found.nics[nic]);
  return near.empty() ? found.nics : near;
}

void set_node(const MachineTopology& found, ClusterSpec& cluster, const std::string& source) {
  const int gpus = static_cast<int>(found.gpus.size()), links = links_of_all_pairs(found);
  cluster.devices = cluster.devices_per_node = gpus;
  cluster.sources["node.devices"] = source;
  if (gpus == 1) return;
  LinkSpec link = cluster.node_link.value_or(LinkSpec{});
  if (links == 0) {
    const std::optional<double> pcie = slowest(found.gpus, &TopologyGpu::pcie_bytes_per_second);
    if (!pcie && (!cluster.node_link || cluster.wiring.hub != NodeHub::kPcie))
      throw SpecError(fmt::format(
          "{}: PCIe joins the GPUs and nothing says how fast it is: read the topology on the machine itself, or "
          "give a --base whose node has the hub \"pcie\"",
          source));
    if (pcie) link.bytes_per_second = *pcie;
    if (cluster.wiring.hub != NodeHub::kPcie) link.efficiency = 1;  // NVLink's efficiency says nothing of PCIe
    cluster.wiring.hub = NodeHub::kPcie;
  } else {
    const bool is_mesh = gpus > 2 && (gpus - 1) * links <= kMostNvLinks;
    const std::optional<double> each = slowest(found.gpus, &TopologyGpu::link_bytes_per_second);
    if (each) link.bytes_per_second = *each * links * (is_mesh ? gpus - 1 : 1);
    if (!each && !cluster.node_link)
      throw SpecError(fmt::format("{}: nothing says how fast an NVLink is: give a --base with a \"node\"", source));
    cluster.wiring.hub = is_mesh ? NodeHub::kMesh : NodeHub::kNvSwitch;
  }
  cluster.node_link = link;
  cluster.sources["node.bandwidth_gb_per_s"] = source;
}

void set_network(const MachineTopology& found, ClusterSpec& cluster, const std::string& source) {
  const std::vector<TopologyNic> nics = near_nics(found);
  if (nics.empty()) return;
  double least = nics.front().bytes_per_second;
  for (const TopologyNic& nic : nics) least = std::min(least, nic.bytes_per_second);
  if (least <= 0 && !cluster.network) return;  // a network of unknown speed prices nothing
  LinkSpec link = cluster.network.value_or(LinkSpec{});
  if (least > 0) {
    link.bytes_per_second = least;
    cluster.sources["network.bandwidth_gb_per_s"] = source;
  }
  cluster.network = link;
  const int count = static_cast<int>(nics.size());
  cluster.wiring.nics_per_node = count == cluster.devices_per_node ? 0 : count;
  cluster.sources["network.nics_per_node"] = source;
}

}  // namespace

ClusterSpec cluster_of_topology(const MachineTopology& found, ClusterSpec base, const std::string& source) {
  if (found.gpus.empty()) throw SpecError(fmt::format("{}: there is no GPU", source));
  base.name += "-measured-topology";
  base.note =
      fmt::format("devices, links and NICs of one machine, from {}; all other figures are those of the base", source);
  set_node(found, base, source);
  set_network(found, base, source);
  for (const TopologyGpu& gpu : found.gpus)
    if (gpu.memory_bytes > 0) {
      base.device.memory_bytes = gpu.memory_bytes;
      base.sources["device.memory_gib"] = source;
    }
  return base;
}

}}  // namespace plumb::planner
