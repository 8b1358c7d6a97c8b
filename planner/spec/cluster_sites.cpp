#include "planner/spec/cluster_sites.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

int own_devices(const ClusterSpec& cluster) {
  int devices = cluster.devices;
  for (const ClusterSpec& site : cluster.further_sites) devices -= site.devices;
  return devices;
}

const ClusterSpec& spec_of(const ClusterSpec& cluster, int site) {
  return site == 0 ? cluster : cluster.further_sites[static_cast<std::size_t>(site) - 1];
}

int devices_on(const ClusterSpec& cluster, int site) {
  return site == 0 ? own_devices(cluster) : spec_of(cluster, site).devices;
}

/// The joined cluster's name is its sites' names with a plus between them.
std::string name_of_site(const ClusterSpec& cluster, int site) {
  std::string name = spec_of(cluster, site).name;
  if (site > 0) return name;
  std::string others;
  for (const ClusterSpec& further : cluster.further_sites) others += "+" + further.name;
  if (name.ends_with(others)) name.erase(name.size() - others.size());
  return name;
}

/// Returns a figure's mean over the devices; nothing unless all sites know it.
template <typename Figure>
std::optional<double> mean_over_devices(const ClusterSpec& cluster, const Figure& figure) {
  double sum = 0;
  for (int site = 0; site < site_count(cluster); ++site) {
    const std::optional<double> value = figure(spec_of(cluster, site).operation);
    if (!value) return std::nullopt;
    sum += *value * devices_on(cluster, site);
  }
  return sum / cluster.devices;
}

}  // namespace

ClusterSpec joined_sites(std::vector<ClusterSpec> sites, const std::optional<LinkSpec>& between) {
  ClusterSpec joined = std::move(sites.front());
  joined.between_sites = between;
  for (auto site = sites.begin() + 1; site != sites.end(); ++site) {
    joined.name += "+" + site->name;
    joined.devices += site->devices;
    joined.further_sites.push_back(std::move(*site));
  }
  require_sites(joined, "cluster " + joined.name);
  return joined;
}

void require_sites(const ClusterSpec& cluster, std::string_view place) {
  if (cluster.further_sites.empty()) return;
  int before = 0;
  for (int site = 0; site < site_count(cluster); ++site) {
    const ClusterSpec& spec = spec_of(cluster, site);
    if (site > 0 && !spec.further_sites.empty())
      throw SpecError(fmt::format("{}: site {} has sites itself: list them beside it", place, spec.name));
    if (!spec.network && !cluster.between_sites)
      throw SpecError(fmt::format("{}: {} has no network to another site: say what links them, as in @10 for 10 GB/s",
                                  place, name_of_site(cluster, site)));
    if (before % std::min(spec.devices_per_node, devices_on(cluster, site)) != 0)
      throw SpecError(fmt::format("{}: the {} devices before {} do not fill nodes of its {} devices: put it first",
                                  place, before, name_of_site(cluster, site), spec.devices_per_node));
    before += devices_on(cluster, site);
  }
}

int site_count(const ClusterSpec& cluster) {
  return 1 + static_cast<int>(cluster.further_sites.size());
}

std::string devices_text(const ClusterSpec& cluster) {
  std::string text;
  for (int site = 0; site < site_count(cluster); ++site)
    text +=
        fmt::format("{}{} x {}", site == 0 ? "" : " + ", devices_on(cluster, site), spec_of(cluster, site).device.name);
  return text;
}

ClusterSpec site_alone(const ClusterSpec& cluster, int site) {
  ClusterSpec alone = spec_of(cluster, site);
  alone.name = name_of_site(cluster, site);
  alone.devices = devices_on(cluster, site);
  alone.further_sites.clear();
  alone.between_sites.reset();
  return alone;
}

ClusterSpec all_on_site(const ClusterSpec& cluster, int site) {
  ClusterSpec all = site_alone(cluster, site);
  all.devices_per_node = std::min(all.devices_per_node, all.devices);
  all.devices = cluster.devices;
  if (!all.network) all.network = cluster.between_sites;  // which a single node's ranks do not use
  return all;
}

int site_of_rank(const ClusterSpec& cluster, const Layout& layout, int rank) {
  if (cluster.further_sites.empty()) return 0;
  int device = rank * (cluster.devices / layout.pipeline);
  int site = 0;
  while (site + 1 < site_count(cluster) && device >= devices_on(cluster, site)) device -= devices_on(cluster, site++);
  return site;
}

int smallest_node(const ClusterSpec& cluster) {
  int smallest = cluster.devices_per_node;
  for (const ClusterSpec& site : cluster.further_sites) smallest = std::min(smallest, site.devices_per_node);
  return smallest;
}

const DeviceSpec& device_of_rank(const ClusterSpec& cluster, const Layout& layout, int rank) {
  return spec_of(cluster, site_of_rank(cluster, layout, rank)).device;
}

const DeviceSpec& largest_device(const ClusterSpec& cluster) {
  const DeviceSpec* largest = &cluster.device;
  const auto memory = [](const DeviceSpec& device) { return device.memory_bytes - device.reserved_bytes; };
  for (const ClusterSpec& site : cluster.further_sites)
    if (memory(site.device) > memory(*largest)) largest = &site.device;
  return *largest;
}

std::optional<std::string> site_conflict(const ClusterSpec& cluster, const Layout& layout) {
  if (cluster.further_sites.empty()) return std::nullopt;
  const int of_rank = layout.data * layout.tensor * layout.context;
  for (int site = 0; site < site_count(cluster); ++site) {
    const int devices = devices_on(cluster, site);
    if (devices % of_rank == 0) continue;
    return fmt::format(
        "a pipeline rank of dp={} times tp={} times cp={} devices would lie on two sites, as {} has {} devices: give "
        "degrees whose product divides {}",
        layout.data, layout.tensor, layout.context, name_of_site(cluster, site), devices, devices);
  }
  if (layout.offload == Offload{}) return std::nullopt;
  return "hosts of several sites are not modelled: give offload=none";
}

LinkCost site_link(const ClusterSpec& cluster, int from, int to, int senders) {
  if (const auto& link = cluster.between_sites)
    return {.latency = link->latency, .bytes_per_second = link->bytes_per_second * link->efficiency / senders};
  const LinkSpec &one = *spec_of(cluster, from).network, &other = *spec_of(cluster, to).network;
  return {
      .latency = std::max(one.latency, other.latency),
      .bytes_per_second = std::min(one.bytes_per_second * one.efficiency, other.bytes_per_second * other.efficiency)};
}

double peak_flops_per_second(const ClusterSpec& cluster, Precision precision) {
  double peak = 0;
  for (int site = 0; site < site_count(cluster); ++site)
    peak += spec_of(cluster, site).device.peak_flops_per_second.at(precision) * devices_on(cluster, site);
  return peak;
}

OperatingSpec mean_operation(const ClusterSpec& cluster) {
  if (cluster.further_sites.empty()) return cluster.operation;
  const auto mean = [&](const auto& figure) { return mean_over_devices(cluster, figure); };
  return {.usd_per_device_hour = mean([](const OperatingSpec& one) { return one.usd_per_device_hour; }),
          .idle_watts = mean([](const OperatingSpec& one) { return one.idle_watts; }),
          .busy_watts = mean([](const OperatingSpec& one) { return one.busy_watts; }),
          .pue = *mean([](const OperatingSpec& one) { return std::optional(one.pue); })};
}

}}  // namespace plumb::planner
