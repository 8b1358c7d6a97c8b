#pragma once
// The machine: devices in nodes, nodes on a network. All figures come from a preset, from a user's file or from a
// calibration (calibrate/calibration.h); none stands in code.
//
//   ClusterSpec cluster = resize(parse_cluster(text_of("tools/specs/clusters/h100.json"), "h100.json"), 16);
//
// The data-sheet figure and the share of it that software reaches stand side by side: a rate is always `peak *
// efficiency`.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/host_spec.h"
#include "planner/spec/nccl_spec.h"
#include "planner/spec/operating_spec.h"
#include "planner/spec/training_spec.h"
#include "schedules/time.h"
#include "simulator/network/topology/fabric.h"
#include "traces/measurement.h"

namespace plumb { inline namespace planner {

/// Share of the peak that a fused attention kernel reaches on sequences of s tokens: efficiency * s / (s +
/// half_sequence), each pass with its own.
struct AttentionRate {
  double forward = 1;
  double backward = 1;
  double half_sequence = 0;           ///< tokens
  double backward_half_sequence = 0;  ///< tokens

  friend bool operator==(const AttentionRate&, const AttentionRate&) = default;
};

struct DeviceSpec {
  std::string name;
  std::map<Precision, double> peak_flops_per_second;  ///< dense; a precision that is not listed cannot be trained in
  std::int64_t memory_bytes = 0;
  std::int64_t reserved_bytes = 0;     ///< memory that driver and runtime take before the first tensor
  double memory_bytes_per_second = 0;  ///< rate of reads and writes together
  double gemm_efficiency = 1;          ///< share of the peak that a GEMM reaches where it fills the device
  /// Share of their peak that fp8 and NVFP4 products with their casts reach; none: gemm_efficiency.
  std::map<Precision, double> quantized_gemm_efficiency;

  /// Returns the share that products reach in a precision.
  double gemm_share(Precision precision) const {
    const auto own = quantized_gemm_efficiency.find(precision);
    return own == quantized_gemm_efficiency.end() ? gemm_efficiency : own->second;
  }

  double attention_efficiency = 1;  ///< share of the peak that fused attention reaches (only the computed half counts)
  std::map<std::string, AttentionRate>
      attention;                   ///< [kernel] (spec/stack_spec.h); other kernels: attention_efficiency
  double memory_efficiency = 1;    ///< share of the memory bandwidth that a memory-bound kernel reaches
  Seconds kernel_fixed{0};         ///< time of every kernel, whatever its size
  Seconds gemm_fixed{0};           ///< time of a GEMM that takes the place of kernel_fixed
  Seconds wave_fixed{0};           ///< time of each wave of output tiles
  double misaligned_rows = 1;      ///< factor on the time of a product whose rows are not a multiple of 8 elements
  double misaligned_by_4 = 1;      ///< factor on the time of a batched product whose rows are 4 n elements, n odd
  double misaligned_by_2 = 1;      ///< factor on the time of a batched product whose rows are 2 n or n elements, n odd
  int compute_units = 1;           ///< units that share a GEMM's output tiles
  int gemm_tile = 1;               ///< edge of the middle output tile in elements; 1: tiles are not modelled
  double collective_slowdown = 0;  ///< x: compute takes 1 + x times as long beside a collective of the device

  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

/// One direction of one device's link.
struct LinkSpec {
  double bytes_per_second = 0;  ///< data sheet
  double efficiency = 1;        ///< share of that rate that collectives reach
  Seconds latency{0};           ///< time of one hop

  friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

/// The way in which the links are wired (simulator/network/topology/fabric.h).
struct WiringSpec {
  NodeHub hub = NodeHub::kNvSwitch;
  Leaves leaves = Leaves::kByRail;
  int nics_per_node = 0;        ///< 0: one for each device
  int nodes_per_leaf = 0;       ///< 0: all
  double oversubscription = 1;  ///< oversubscription of a leaf's trunk

  friend bool operator==(const WiringSpec&, const WiringSpec&) = default;
};

struct ClusterSpec {
  std::string name;
  std::string note;
  int devices = 1;
  DeviceSpec device;
  int devices_per_node = 1;
  std::optional<LinkSpec> node_link;  ///< link between devices of a node; needed where a node has more than one
  std::optional<LinkSpec> network;    ///< link of each of nic_count() NICs; needed where there is more than one node
  WiringSpec wiring;
  std::optional<HostSpec> host;  ///< needed by offloading
  OperatingSpec operation;       ///< needed where money or energy is asked for
  std::optional<NcclSpec> nccl;  ///< inputs of NCCL's cost model; without them collectives are priced as rings
  std::vector<CollectiveTable> collective_tables;  ///< measured tables, which override the models
  std::vector<KernelSample> samples;               ///< measured times of kernels, which override the roofline
  std::map<std::string, std::string> sources;      ///< source of each figure by its dotted path ("device.memory_gib")
  /// Devices of another kind or in another place, behind those of this one, which are then the others of `devices`
  /// (spec/cluster_sites.h).
  std::vector<ClusterSpec> further_sites;
  std::optional<LinkSpec> between_sites;  ///< link that a site's devices share; nothing: the sites' networks are one
};

int node_count(const ClusterSpec& cluster);

/// Returns the NICs of a node.
int nic_count(const ClusterSpec& cluster);

/// Returns how much of a NIC a device has where all devices of its node send at once.
double nic_share(const ClusterSpec& cluster);

/// Returns the reason why a cluster of one site cannot have that many devices, with the remedy; empty if it can.
std::string devices_conflict(const ClusterSpec& cluster, int devices);

/// The devices of the largest host; a node with more is a domain of several hosts, such as NVL72.
inline constexpr int kLargestHost = 16;

/// Returns the same machine with another number of devices. Of a domain of several hosts as many are taken as fill each
/// alike, if that is half of it or more: 64 of 72 for 256. Throws SpecError unless `devices`
/// is at most one node or fills its nodes, where several nodes have no network to connect them, and for another number
/// of devices on several sites.
ClusterSpec resize(ClusterSpec cluster, int devices);

/// A preset's name with a number of devices: "h100:16" -> {"h100", 16}; "h100" -> {"h100", nothing}. Parsing throws
/// SpecError if what follows the colon is no number above 0.
struct ClusterName {
  std::string preset;
  std::optional<int> devices;
};
ClusterName parse_cluster_name(std::string_view name);

/// Throws SpecError naming `place` unless the sample is of a kernel (kernels/layer.h), a "message" or an
/// "all_reduce", its shape has that kernel's length and no negative size, and its time and its busy ranks are above 0.
void check_kernel_sample(const KernelSample& sample, std::string_view place);

/// The JSON form of a cluster, with units in the keys:
///   {"name", "note", "devices", "device": {"name", "peak_tflops": {"bf16": ...}, "memory_gib", "reserved_gib",
///    "memory_bandwidth_gb_per_s", "gemm_efficiency", "fp8_gemm_efficiency", "nvfp4_gemm_efficiency", "attention_efficiency", "attention":
///    {"flash2": {"forward", "backward", "half_sequence", "backward_half_sequence" (left out: the same)}}, "memory_efficiency", "kernel_fixed_us", "gemm_fixed_us",
///    "wave_fixed_us", "misaligned_rows", "misaligned_by_4", "misaligned_by_2", "compute_units", "gemm_tile",
///    "collective_slowdown"}, "node": {"devices", "bandwidth_gb_per_s", "efficiency", "latency_us", "hub": "nvswitch",
///    "pcie" or "mesh" (a link for each pair; the bandwidth is that of all links of a device)}, "network":
///    {"bandwidth_gb_per_s", "efficiency", "latency_us", "nics_per_node", "leaves": "rail" or "node", "nodes_per_leaf",
///    "oversubscription"}, "host": {...} (spec/host_spec.h), "operation": {...} (spec/operating_spec.h), "nccl": {...}
///    and "collective_tables": [...] (spec/nccl_spec.h), "kernel_samples": [...], "further_sites": [{...}] and
///    "between_sites": {"bandwidth_gb_per_s", "efficiency", "latency_us"} (spec/cluster_sites.h)}
/// A number is plain or {"value": 80, "source": "..."}. GB are 1e9 bytes, GiB 2^30. Reading throws SpecError with the
/// place: an unknown or missing key, a wrong type, a size or rate that is not positive, an efficiency above 1.
ClusterSpec cluster_from_json(const nlohmann::json& json, const std::string& place);
ClusterSpec parse_cluster(std::string_view text, const std::string& file);
nlohmann::ordered_json to_json(const ClusterSpec& cluster);

}}  // namespace plumb::planner
