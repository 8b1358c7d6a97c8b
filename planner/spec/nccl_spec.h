#pragma once
// The inputs of NCCL's cost model (price/collective/), and the constants by which measurements differ from it.
//
//   "nccl": {"generation": "hopper", "host_cpu": "intel", "nvlink_sharp": true}
//
// Channels and their speeds follow from the node's and the network's bandwidths by NCCL's search constants
// (price/collective/nccl_channels.h), or are given.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "schedules/cost_table.h"
#include "schedules/forms/strict_json.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

enum class NcclGeneration : std::uint8_t { kVolta, kAmpere, kHopper, kBlackwell };
enum class HostCpu : std::uint8_t { kIntel, kAmd, kOther };

/// Channels of one of NCCL's graphs, and the rate of each inside a node and between nodes.
struct NcclChannels {
  int count = 0;
  double inside_bytes_per_second = 0;
  double between_bytes_per_second = 0;

  friend bool operator==(const NcclChannels&, const NcclChannels&) = default;
};

/// Constants added to NCCL's own estimate of the algorithm and protocol that it has chosen; fitted on measurements of
/// the cluster.
struct NcclCalibration {
  Seconds low_latency_launch{0};  ///< added to LL and LL128
  Seconds simple_launch{0};       ///< added to Simple, send/recv and all-to-all
  double bandwidth_scale = 1;     ///< factor on every bandwidth

  friend bool operator==(const NcclCalibration&, const NcclCalibration&) = default;
};

struct NcclSpec {
  NcclGeneration generation = NcclGeneration::kAmpere;
  HostCpu host_cpu = HostCpu::kOther;
  bool nvlink = true;          ///< false: devices of a node communicate over PCIe
  bool nvlink_sharp = false;   ///< the node's switches reduce (NVLS)
  bool network_sharp = false;  ///< the network's switches reduce (CollNet)
  Seconds nic_latency{0};      ///< latency that the network plug-in reports
  /// Bytes a second that the rings of one node's groups move together where they close over the host. A ring enters and
  /// leaves a node by one NIC. Where no two ranks of the group sit at one NIC and NCCL cannot reach that NIC over
  /// NVLink (before 2.12, PXN), its last rank sends through the processors. 0: no limit.
  double host_crossing_bytes_per_second = 0;
  bool balanced_tree = true;                     ///< false: NCCL found only its plain tree pattern
  std::optional<NcclChannels> ring, tree, nvls;  ///< given instead of searched; for every group
  NcclCalibration calibration;

  friend bool operator==(const NcclSpec&, const NcclSpec&) = default;
};

/// Measured times of one collective on one shape of group, ascending in bytes; they override every model.
struct CollectiveTable {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int ranks = 0;
  int nodes = 1;
  std::vector<std::int64_t> bytes;  ///< whole buffer of one rank
  std::vector<Seconds> times;       ///< as long as `bytes`

  friend bool operator==(const CollectiveTable&, const CollectiveTable&) = default;
};

std::string_view generation_name(NcclGeneration generation);
std::optional<CollectiveKind> collective_from_name(std::string_view name);

/// Reads the block: "generation" (volta, ampere, hopper, blackwell), "host_cpu" (intel, amd, other), "nvlink",
/// "nvlink_sharp", "network_sharp", "nic_latency_us", "host_crossing_gb_per_s", "tree_pattern" (balanced,
/// plain), "ring", "tree", "nvls" ({"channels", "inside_gb_per_s", "between_gb_per_s"}), "low_latency_launch_us",
/// "simple_launch_us", "bandwidth_scale". Throws SpecError naming the key if one is unknown, missing or out of range; a
/// scale above 1.25 says that the mapping is wrong.
NcclSpec read_nccl(StrictObject object);

/// Reads {"collective", "ranks", "nodes", "bytes": [...], "us": [...]}. Throws SpecError if the lists differ in length,
/// are empty, do not ascend or hold a time that is not above 0.
CollectiveTable read_collective_table(StrictObject object);
nlohmann::ordered_json to_json(const CollectiveTable& table);

}}  // namespace plumb::planner
