#include "planner/evaluate/layout_partition.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/graph_stages.h"
#include "planner/evaluate/stage_chain.h"
#include "planner/evaluate/stage_passes.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/framework_split.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

LayerLoads layer_weights(const Pricing& pricing, const std::vector<LayerPrice>& prices, Recompute recompute) {
  const std::vector<int>& kinds = pricing.kind_of_layer();
  std::vector<Seconds> steady;
  for (const LayerPrice& price : prices) steady.push_back(steady_seconds(price, recompute));
  LayerLoads weights{.embedding = steady[kinds.front()], .head = steady[kinds.back()]};
  for (std::size_t layer = 1; layer + 1 < kinds.size(); ++layer) weights.transformer += steady[kinds[layer]];
  weights.transformer /= static_cast<double>(kinds.size() - 2);
  return weights;
}

}  // namespace

Partition layout_partition(Pricing& pricing, const Layout& layout, const Schedule& schedule, int parts) {
  if (pricing.graph() != nullptr) return graph_partition(pricing, layout, schedule);
  if (!layout.split.empty()) {
    if (static_cast<int>(layout.split.size()) != parts) {
      throw SpecError(fmt::format("split names {} stages, but the layout has {}: give one number of layers for each",
                                  layout.split.size(), parts));
    }
    require_all_layers(layout.split, static_cast<int>(pricing.layers().size()) - 2);
    return {.split = layout.split};
  }
  const auto layers = static_cast<int>(pricing.model().layers);
  if (layers < parts) {
    throw SpecError(fmt::format("{} stages cannot share {} layers: use fewer pipeline ranks or chunks", parts, layers));
  }
  if (const StackSpec* stack = pricing.stack_of(layout)) {
    if (auto split = framework_split(stack->stage_split, layers, parts)) return {.split = std::move(*split)};
  }
  return balanced_split(pricing, layout, schedule.stages);
}

Partition balanced_split(Pricing& pricing, const Layout& layout, const std::vector<StagePlace>& stages) {
  if (site_count(pricing.cluster()) > 1 || !layout.meshes.empty())
    return {.split = fastest_split(stage_chain(pricing, layout, stages))};
  const std::vector<LayerPrice>& prices = pricing.layer_prices(layout, pricing.placements(layout).inner.front());
  // The other layers decide where each stage rebuilds as many.
  const Recompute weighed = layout.recompute_layers > 0 ? Recompute::kNone : layout.recompute;
  return pricing.balanced_split(prices, weighed, stages, [&] { return layer_weights(pricing, prices, weighed); });
}

}}  // namespace plumb::planner
