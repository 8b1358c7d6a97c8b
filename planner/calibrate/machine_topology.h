#pragma once
// The links between the GPUs and network cards of one machine, and the cluster that follows from them.
//
//   MachineTopology found = parse_topology_matrix(text, "topo.txt");     // what `nvidia-smi topo -m` prints
//   ClusterSpec cluster = cluster_of_topology(found, preset, "topo.txt");
//
// tools/machine/find_topology.h fills the same value on the machine itself.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/cluster_spec.h"

namespace plumb { inline namespace planner {

/// The path between two devices, nearest first, by the names of `nvidia-smi topo -m`.
enum class PathKind : std::uint8_t {
  kNvLink,      ///< NV#: that many bonded NVLinks
  kOneBridge,   ///< PIX: at most one PCIe bridge
  kBridges,     ///< PXB: several PCIe bridges
  kHostBridge,  ///< PHB: a PCIe host bridge, typically the CPU
  kNode,        ///< NODE: PCIe and the interconnect of the host bridges of a NUMA node
  kSystem,      ///< SYS: PCIe and the interconnect of NUMA nodes
};

struct DevicePath {
  PathKind kind = PathKind::kSystem;
  int links = 0;  ///< number of links of kNvLink

  friend bool operator==(const DevicePath&, const DevicePath&) = default;
};

struct TopologyGpu {
  std::string name;                  ///< "NVIDIA H100 80GB HBM3"; empty: not known
  int numa = -1;                     ///< -1: not known
  double pcie_bytes_per_second = 0;  ///< one direction; 0: not known
  double link_bytes_per_second = 0;  ///< rate of one NVLink, one direction; 0: not known
  std::int64_t memory_bytes = 0;     ///< 0: not known
};

struct TopologyNic {
  std::string name;             ///< "mlx5_0"
  double bytes_per_second = 0;  ///< 0: not known
};

struct MachineTopology {
  std::vector<TopologyGpu> gpus;
  std::vector<TopologyNic> nics;
  std::vector<std::vector<DevicePath>> between_gpus;  ///< [gpu][gpu]; the diagonal has no meaning
  std::vector<std::vector<DevicePath>> to_nics;       ///< [gpu][nic]
};

/// Reads the table and the names of its NICs below it; colours and the tool's other output are ignored. Throws
/// SpecError "FILE:LINE: ..." if there is no such table, a row has too few cells, a cell is none of the legend's, or
/// two GPUs see different paths to each other.
MachineTopology parse_topology_matrix(std::string_view text, const std::string& file);

/// Returns one node of that machine: `base` with the devices, node link and NICs that were found; figures that were not
/// found stay those of `base`. NVLinks between all pairs are a switch where a device does not have enough of them for
/// each pair (18 at most), and a mesh otherwise. Where a pair has no NVLink, messages go over PCIe. `source` is the
/// source of the figures. Throws SpecError if there is no GPU, or if PCIe joins them and neither `found` nor `base` has
/// its rate.
ClusterSpec cluster_of_topology(const MachineTopology& found, ClusterSpec base, const std::string& source);

}}  // namespace plumb::planner
