#include "planner/search/resource_sensitivity.h"

#include <functional>

#include "simulator/path_length.h"

namespace plumb {
namespace {

struct Figure {
  const char* name;
  std::function<double(const ClusterSpec&)> value;
  std::function<void(ClusterSpec&, double factor)> scale;
};

std::vector<Figure> figures() {
  const auto device = [](const char* name, auto member) {
    return Figure{.name = name,
                  .value = [member](const ClusterSpec& cluster) { return Seconds{cluster.device.*member}.count(); },
                  .scale = [member](ClusterSpec& cluster, double factor) { cluster.device.*member *= factor; }};
  };
  const auto link = [](const char* name, auto which, auto member) {
    return Figure{.name = name,
                  .value =
                      [=](const ClusterSpec& cluster) {
                        return cluster.*which ? Seconds{(*(cluster.*which)).*member}.count() : 0.0;
                      },
                  .scale = [=](ClusterSpec& cluster, double factor) { (*(cluster.*which)).*member *= factor; }};
  };
  const Figure peak{.name = "device.peak_tflops",
                    .value = [](const ClusterSpec&) { return 1.0; },
                    .scale =
                        [](ClusterSpec& cluster, double factor) {
                          for (auto& [precision, flops] : cluster.device.peak_flops_per_second) flops *= factor;
                        }};
  return {peak,
          device("device.memory_bandwidth_gb_per_s", &DeviceSpec::memory_bytes_per_second),
          device("device.kernel_fixed_us", &DeviceSpec::kernel_fixed),
          device("device.gemm_fixed_us", &DeviceSpec::gemm_fixed),
          link("node.bandwidth_gb_per_s", &ClusterSpec::node_link, &LinkSpec::bytes_per_second),
          link("node.latency_us", &ClusterSpec::node_link, &LinkSpec::latency),
          link("network.bandwidth_gb_per_s", &ClusterSpec::network, &LinkSpec::bytes_per_second),
          link("network.latency_us", &ClusterSpec::network, &LinkSpec::latency)};
}

}  // namespace

std::vector<ResourceSensitivity> resource_sensitivity(const Plan& plan, const Predicted& predicted) {
  const std::vector<CriticalStep>& path = predicted.simulation.critical_path;
  if (path.empty() || predicted.simulation.engine != "compiled") return {};
  Layout layout = plan.layout;
  layout.split = predicted.priced.split;
  const auto length_with = [&](const Figure& figure, double factor) {
    ClusterSpec cluster = plan.cluster;
    figure.scale(cluster, factor);
    Pricing pricing(plan.model, cluster, plan.training);
    return path_length(predicted.lowered, price_layout(pricing, layout, predicted.lowered).costs, path);
  };
  const Seconds length = path_length(predicted.lowered, predicted.priced.costs, path);
  constexpr double kStep = 1e-4;
  std::vector<ResourceSensitivity> result;
  for (const Figure& figure : figures()) {
    if (!(figure.value(plan.cluster) > 0)) continue;
    const Seconds change = length_with(figure, 1 + kStep) - length_with(figure, 1 - kStep);
    result.push_back({.figure = figure.name, .elasticity = change / length / (2 * kStep)});
  }
  return result;
}

}  // namespace plumb
