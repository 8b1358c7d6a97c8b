#include "planner/search/resource_sensitivity.h"

#include <optional>
#include <utility>

#include "planner/evaluate/topology_links.h"
#include "planner/search/cluster_figures.h"
#include "simulator/path/path_length.h"

namespace plumb { inline namespace planner {
namespace {

/// The figure is moved by so much either way: less, and a price that goes in steps (a table's, NCCL's speeds) counts
/// for far more than it does where a step happens to lie.
constexpr double kSmall = 1e-2;

/// The elasticity of the step by each figure: `growth_with` says how much longer the step is with a figure times a
/// factor, or nothing where that cannot be told.
template <typename GrowthWith>
std::vector<ResourceSensitivity> elasticities(const Plan& plan, Seconds step, GrowthWith growth_with) {
  std::vector<ResourceSensitivity> result;
  for (const ClusterFigure& figure : figures_of(plan.cluster, plan.layout.offload != Offload{})) {
    const std::optional<Seconds> more = growth_with(figure, 1 + kSmall);
    const std::optional<Seconds> less = growth_with(figure, 1 - kSmall);
    if (!more || !less) continue;
    result.push_back({.figure = figure.name, .elasticity = (*more - *less) / step / (2 * kSmall)});
  }
  return result;
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
  const auto growth_with = [&](const ClusterFigure& figure, double factor) -> std::optional<Seconds> {
    Pricing pricing(plan.model, with_figure(plan.cluster, figure, factor), plan.training);
    return path_length(evaluation.lowered, cost_table(price_layout(pricing, layout, evaluation.lowered)), path) -
           length;
  };
  return elasticities(plan, length, growth_with);
}

std::vector<ResourceSensitivity> resource_sensitivity(const Plan& plan, const Evaluation& evaluation,
                                                      const NetworkGradient& gradient, const NetworkOptions& options) {
  const Layout layout = with_stages_of(plan.layout, evaluation);
  const auto growth_with = [&](const ClusterFigure& figure, double factor) {
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
