#include "planner/spec/cluster_spec.h"

#include <algorithm>
#include <charconv>
#include <string>

#include <fmt/format.h>

#include "kernels/layer.h"
#include "schedules/error.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {

std::string devices_conflict(const ClusterSpec& cluster, int devices) {
  const int per_node = cluster.devices_per_node;
  if (devices < 1) return fmt::format("{} devices cannot train anything: give 1 or more", devices);
  if (devices > kMostDevices) return fmt::format("{} devices are too many: give at most {}", devices, kMostDevices);
  if (devices > per_node && devices % per_node != 0) {
    return fmt::format("{} devices do not fill nodes of {}: give {} or {}", devices, per_node,
                       devices / per_node * per_node, (devices / per_node + 1) * per_node);
  }
  if (devices > per_node && !cluster.network) {
    return fmt::format("there is no network for more than one node: give at most {} devices, or add \"network\"",
                       per_node);
  }
  return "";
}

int node_count(const ClusterSpec& cluster) {
  int own = cluster.devices, further = 0;
  for (const ClusterSpec& site : cluster.further_sites) {
    own -= site.devices;
    further += node_count(site);
  }
  return (own + cluster.devices_per_node - 1) / cluster.devices_per_node + further;
}

int nic_count(const ClusterSpec& cluster) {
  return cluster.wiring.nics_per_node > 0 ? cluster.wiring.nics_per_node : cluster.devices_per_node;
}

double nic_share(const ClusterSpec& cluster) {
  return static_cast<double>(nic_count(cluster)) / cluster.devices_per_node;
}

ClusterSpec resize(ClusterSpec cluster, int devices) {
  if (!cluster.further_sites.empty()) {
    if (devices == cluster.devices) return cluster;
    throw SpecError(
        fmt::format("cluster {} has {} devices on several sites, not {}: give each site its own, as in "
                    "h100:16+a100:8",
                    cluster.name, cluster.devices, devices));
  }
  const int domain = cluster.devices_per_node;
  if (domain > kLargestHost && devices > domain) {
    int share = domain;
    while (share > domain / 2 && devices % share != 0) --share;
    if (devices % share == 0) cluster.devices_per_node = share;
    if (const int nics = cluster.wiring.nics_per_node; nics > 0)
      cluster.wiring.nics_per_node = std::max(1, nics * cluster.devices_per_node / domain);
  }
  const std::string conflict = devices_conflict(cluster, devices);
  if (!conflict.empty()) throw SpecError(fmt::format("cluster {}: {}", cluster.name, conflict));
  cluster.devices = devices;
  return cluster;
}

ClusterName parse_cluster_name(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return {.preset = std::string(name)};
  const std::string_view digits = name.substr(colon + 1);
  int devices = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), devices);
  if (error != std::errc{} || end != digits.data() + digits.size() || devices < 1) {
    throw SpecError(fmt::format("cluster {}: \"{}\" is no number of devices: write PRESET:DEVICES, such as {}:8", name,
                                digits, name.substr(0, colon)));
  }
  return {.preset = std::string(name.substr(0, colon)), .devices = devices};
}

void check_kernel_sample(const KernelSample& sample, std::string_view place) {
  std::size_t length = 0;
  if (sample.kernel == "message") length = 1;
  if (sample.kernel == "all_reduce") length = 2;
  for (int kind = 0; kind < kKernelKindCount; ++kind) {
    if (kernel_name(static_cast<KernelKind>(kind)) == sample.kernel)
      length = kernel_shape_length(static_cast<KernelKind>(kind));
  }
  if (length == 0) {
    throw SpecError(fmt::format("{}: \"{}\" is no kernel of this version: calibrate again, or drop the sample", place,
                                sample.kernel));
  }
  if (sample.shape.size() != length || std::ranges::any_of(sample.shape, [](std::int64_t size) { return size < 0; })) {
    throw SpecError(fmt::format("{}: the shape of {} has {} sizes of 0 or more: calibrate again, or drop the sample",
                                place, sample.kernel, length));
  }
  if (!(sample.median.count() > 0) || sample.busy_ranks < 1) {
    throw SpecError(fmt::format("{}: {} lasts {} s on {} ranks: measure it again, or drop the sample", place,
                                sample.kernel, sample.median.count(), sample.busy_ranks));
  }
}

}}  // namespace plumb::planner
