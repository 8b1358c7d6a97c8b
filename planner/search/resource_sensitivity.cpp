#include "planner/search/resource_sensitivity.h"

#include <functional>
#include <optional>
#include <utility>

#include "planner/evaluate/topology_links.h"
#include "simulator/path/path_length.h"

namespace plumb { inline namespace planner {
namespace {

struct Figure {
  const char* name;
  std::function<double(const ClusterSpec&)> value;
  std::function<void(ClusterSpec&, double factor)> scale;
  bool of_host = false;
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
  std::vector<Figure> all{peak,
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

/// The figure is moved by so much either way: less, and a price that goes in steps (a table's, NCCL's speeds) counts
/// for far more than it does where a step happens to lie.
constexpr double kSmall = 1e-2;

/// The elasticity of the step by each figure: `growth_with` says how much longer the step is with a figure times a
/// factor, or nothing where that cannot be told.
template <typename GrowthWith>
std::vector<ResourceSensitivity> elasticities(const Plan& plan, Seconds step, GrowthWith growth_with) {
  const bool offloads = plan.layout.offload != Offload{};
  std::vector<ResourceSensitivity> result;
  for (const Figure& figure : figures()) {
    if (!(figure.value(plan.cluster) > 0) || (figure.of_host && !offloads)) continue;
    const std::optional<Seconds> more = growth_with(figure, 1 + kSmall);
    const std::optional<Seconds> less = growth_with(figure, 1 - kSmall);
    if (!more || !less) continue;
    result.push_back({.figure = figure.name, .elasticity = (*more - *less) / step / (2 * kSmall)});
  }
  return result;
}

ClusterSpec with_figure(ClusterSpec cluster, const Figure& figure, double factor) {
  figure.scale(cluster, factor);
  return cluster;
}

Layout with_stages_of(Layout layout, const Evaluation& evaluation) {
  layout.split = evaluation.priced.split;
  return layout;
}

}  // namespace

std::vector<ResourceSensitivity> resource_sensitivity(const Plan& plan, const Evaluation& evaluation) {
  const std::vector<CriticalStep>& path = evaluation.simulation.critical_path;
  if (path.empty() || evaluation.simulation.engine != "compiled") return {};
  const Layout layout = with_stages_of(plan.layout, evaluation);
  const Seconds length = path_length(evaluation.lowered, evaluation.costs, path);
  const auto growth_with = [&](const Figure& figure, double factor) -> std::optional<Seconds> {
    Pricing pricing(plan.model, with_figure(plan.cluster, figure, factor), plan.training);
    return path_length(evaluation.lowered, cost_table(price_layout(pricing, layout, evaluation.lowered)), path) -
           length;
  };
  return elasticities(plan, length, growth_with);
}

std::vector<ResourceSensitivity> resource_sensitivity(const Plan& plan, const Evaluation& evaluation,
                                                      const NetworkGradient& gradient, const NetworkOptions& options) {
  const Layout layout = with_stages_of(plan.layout, evaluation);
  const auto growth_with = [&](const Figure& figure, double factor) {
    const ClusterSpec cluster = with_figure(plan.cluster, figure, factor);
    Pricing pricing(plan.model, cluster, plan.training);
    CostTable costs = cost_table(price_layout(pricing, layout, evaluation.lowered));
    if (options.topology)
      costs = with_topology_links(std::move(costs), *options.topology, replica_grid_of(layout), evaluation.lowered);
    const NetworkSpec network =
        cluster_network(cluster, replica_grid_of(layout), {.ranks = grid_of(layout), .experts = expert_grid_of(layout)},
                        evaluation.lowered, costs, options);
    return growth(gradient, evaluation.lowered, costs, network);
  };
  return elasticities(plan, to_seconds(gradient.makespan), growth_with);
}

}}  // namespace plumb::planner
