#include "planner/evaluate/priced_layout.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "planner/evaluate/graph_stages.h"
#include "planner/evaluate/handovers.h"
#include "planner/evaluate/layout_partition.h"
#include "planner/evaluate/stage_price.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/rank_layout.h"

namespace plumb { inline namespace planner {
namespace {

/// [stage] the value of its kind; empty without values.
template <typename Value>
std::vector<Value> by_stage(const std::vector<Value>& by_kind, const std::vector<int>& kind_of_stage) {
  std::vector<Value> values;
  if (by_kind.empty()) return values;
  values.reserve(kind_of_stage.size());
  for (const int kind : kind_of_stage) values.push_back(by_kind[kind]);
  return values;
}

/// Returns the layout with each kind of stage as `price_of(pricer, stage)` has it, without links.
template <typename PriceOf>
PricedLayout with_stages(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order,
                         const PriceOf& price_of) {
  Partition partition = layout_partition(pricing, layout, schedule, order.parts);
  PricedLayout priced{.split = std::move(partition.split), .notes = std::move(partition.notes)};
  const ClusterSpec& cluster = pricing.cluster();
  const bool alike = layout.meshes.empty();
  std::vector<Layout> layouts;  // [pipeline rank]
  for (int rank = 0; !alike && rank < layout.pipeline; ++rank) layouts.push_back(layout_of_rank(layout, rank));
  std::vector<StagePricer> pricers;  // [site], or [pipeline rank] where each has a layout of its own
  for (int site = 0; alike && site < site_count(cluster); ++site)
    pricers.emplace_back(pricing.on_site(site), layout, schedule, order, priced.split);
  for (const Layout& of_rank : layouts) pricers.emplace_back(pricing, of_rank, schedule, order, priced.split);
  const auto pricer_of = [&](const StagePlace& stage) {
    return alike ? site_of_rank(cluster, layout, stage.rank) : stage.rank;
  };
  std::vector<const StagePlace*> kinds;
  priced.kind_of_stage.reserve(schedule.stages.size());
  constexpr std::size_t kUsualKinds = 8;  // ends, and stages on ranks whose groups are placed differently
  priced.kinds.stages.reserve(std::min(kUsualKinds, schedule.stages.size()));
  for (const StagePlace& stage : schedule.stages) {
    const int which = pricer_of(stage);
    StagePricer& pricer = pricers[static_cast<std::size_t>(which)];
    const auto is_twin = [&](const StagePlace* other) {
      return alike && pricer_of(*other) == which && pricer.alike(stage, *other);
    };
    const auto twin = std::ranges::find_if(kinds, is_twin) - kinds.begin();
    priced.kind_of_stage.push_back(static_cast<int>(twin));
    if (twin < std::ssize(kinds)) continue;
    kinds.push_back(&stage);
    StagePrice price = price_of(pricer, stage);
    priced.kinds.stages.push_back(std::move(price.costs));
    if (price.buckets) priced.buckets.push_back(*price.buckets);
    if (price.host_optimizer_bytes) priced.host_optimizer_bytes.push_back(*price.host_optimizer_bytes);
  }
  return priced;
}

}  // namespace

PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order) {
  PricedLayout priced = with_stages(pricing, layout, schedule, order,
                                    [](StagePricer& pricer, const StagePlace& stage) { return pricer.price(stage); });
  priced.links.reserve(order.hops.size());
  for (const auto& [source, destination] : order.hops)
    priced.links.push_back({source, destination, pricing.hop(layout, source, destination)});
  return layout.meshes.empty() ? priced : with_handovers(pricing, layout, schedule, std::move(priced), std::nullopt);
}

PricedLayout hold_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order) {
  return with_stages(pricing, layout, schedule, order,
                     [](StagePricer& pricer, const StagePlace& stage) { return pricer.hold(stage); });
}

PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule) {
  return price_layout(pricing, layout, schedule, stage_order(schedule));
}

CostTable cost_table(const PricedLayout& priced) {
  CostTable costs{.stages = by_stage(priced.kinds.stages, priced.kind_of_stage)};
  for (const StageLink& link : priced.links) costs.links[{link.source, link.destination}] = link.cost;
  return costs;
}

std::vector<int> buckets_by_stage(const PricedLayout& priced) {
  return by_stage(priced.buckets, priced.kind_of_stage);
}

std::vector<std::int64_t> host_optimizer_bytes_by_stage(const PricedLayout& priced) {
  return by_stage(priced.host_optimizer_bytes, priced.kind_of_stage);
}

std::vector<std::vector<Layer>> layers_by_part(const Pricing& pricing, const std::vector<int>& split) {
  const GraphTables* graph = pricing.graph();
  return graph != nullptr ? runnable_layers_by_part(*graph, split) : layers_by_part(pricing.layers(), split);
}

}}  // namespace plumb::planner
