#include "planner/evaluate/priced_layout.h"

#include <utility>

#include "planner/evaluate/graph_stages.h"
#include "planner/evaluate/stage_prices.h"
#include "planner/partition/balanced_partition.h"

namespace plumb { inline namespace planner {
namespace {

template <typename Value>
std::vector<Value> by_stage(const std::vector<Value>& by_kind, const std::vector<int>& kind_of_stage) {
  std::vector<Value> values;
  if (by_kind.empty()) return values;
  values.reserve(kind_of_stage.size());
  for (const int kind : kind_of_stage) values.push_back(by_kind[kind]);
  return values;
}

}  // namespace

PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule) {
  StagePrices prices = price_stages(pricing, layout, schedule, stage_order(schedule));
  const GraphTables* graph = pricing.graph();
  PricedLayout priced{.layers = graph != nullptr ? runnable_layers_by_part(*graph, prices.split)
                                                 : layers_by_part(pricing.layers(), prices.split),
                      .split = std::move(prices.split),
                      .buckets = by_stage(prices.buckets, prices.kind_of_stage),
                      .host_optimizer_bytes = by_stage(prices.host_optimizer_bytes, prices.kind_of_stage),
                      .notes = std::move(prices.notes)};
  priced.costs.stages = by_stage(prices.kinds.stages, prices.kind_of_stage);
  for (const StageLink& link : prices.links) priced.costs.links[{link.source, link.destination}] = link.cost;
  return priced;
}

}}  // namespace plumb::planner
