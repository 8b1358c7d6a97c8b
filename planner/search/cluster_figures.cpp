#include "planner/search/cluster_figures.h"

#include <utility>

namespace plumb { inline namespace planner {

std::vector<ClusterFigure> cluster_figures() {
  const auto device = [](const char* name, auto member) {
    return ClusterFigure{
        .name = name,
        .value = [member](const ClusterSpec& cluster) { return Seconds{cluster.device.*member}.count(); },
        .scale = [member](ClusterSpec& cluster, double factor) { cluster.device.*member *= factor; }};
  };
  const auto link = [](const char* name, auto which, auto member) {
    return ClusterFigure{.name = name,
                         .value =
                             [=](const ClusterSpec& cluster) {
                               return cluster.*which ? Seconds{(*(cluster.*which)).*member}.count() : 0.0;
                             },
                         .scale = [=](ClusterSpec& cluster, double factor) { (*(cluster.*which)).*member *= factor; }};
  };
  const ClusterFigure peak{.name = "device.peak_tflops",
                           .value = [](const ClusterSpec&) { return 1.0; },
                           .scale =
                               [](ClusterSpec& cluster, double factor) {
                                 for (auto& [precision, flops] : cluster.device.peak_flops_per_second) flops *= factor;
                               }};
  std::vector<ClusterFigure> all{peak,
                                 device("device.memory_bandwidth_gb_per_s", &DeviceSpec::memory_bytes_per_second),
                                 device("device.kernel_fixed_us", &DeviceSpec::kernel_fixed),
                                 device("device.gemm_fixed_us", &DeviceSpec::gemm_fixed),
                                 link("node.bandwidth_gb_per_s", &ClusterSpec::node_link, &LinkSpec::bytes_per_second),
                                 link("node.latency_us", &ClusterSpec::node_link, &LinkSpec::latency),
                                 link("network.bandwidth_gb_per_s", &ClusterSpec::network, &LinkSpec::bytes_per_second),
                                 link("network.latency_us", &ClusterSpec::network, &LinkSpec::latency)};
  for (const auto& [name, member] : {std::pair{"host.device_bandwidth_gb_per_s", &HostSpec::device_bytes_per_second},
                                     {"host.memory_bandwidth_gb_per_s", &HostSpec::memory_bytes_per_second}}) {
    all.push_back(link(name, &ClusterSpec::host, member));
    all.back().of_host = true;
  }
  return all;
}

std::vector<ClusterFigure> figures_of(const ClusterSpec& cluster, bool offloads) {
  std::vector<ClusterFigure> figures = cluster_figures();
  std::erase_if(figures, [&](const ClusterFigure& figure) {
    return !(figure.value(cluster) > 0) || (figure.of_host && !offloads);
  });
  return figures;
}

ClusterSpec with_figure(ClusterSpec cluster, const ClusterFigure& figure, double factor) {
  figure.scale(cluster, factor);
  for (ClusterSpec& site : cluster.further_sites)
    if (figure.value(site) > 0) figure.scale(site, factor);
  return cluster;
}

}}  // namespace plumb::planner
