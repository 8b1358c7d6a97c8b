#include "planner/search/work_bound.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "planner/spec/cluster_sites.h"

namespace plumb { inline namespace planner {
namespace {

/// Stages are priced in whole picoseconds, and their layers are summed up in another order.
constexpr double kLessRounding = 1 - 1e-5;

}  // namespace

WorkBounds::WorkBounds(Pricing& pricing) : pricing_(pricing) {
  const GraphTables* graph = pricing.graph();
  for (const int kind : graph != nullptr ? graph->kind_of_node : pricing.kind_of_layer()) {
    auto place = std::ranges::find(layers_, kind, &KindCount::kind);
    if (place == layers_.end()) place = layers_.insert(place, {.kind = kind});
    ++place->count;
  }
}

MicrobatchWork WorkBounds::work(const Layout& layout, int rebuilt) {
  if (site_count(pricing_.cluster()) > 1) return {};
  const std::vector<InnerGroups>& groups = pricing_.placements(layout).inner;
  const bool alike = alike_.of(&groups, [&] {
    return std::ranges::all_of(groups, [&](const InnerGroups& other) { return other == groups.front(); });
  });
  if (!alike) return {};
  const std::vector<LayerPrice>& prices = pricing_.layer_prices(layout, groups.front());
  const int kept = layout.recompute_layers > 0 ? static_cast<int>(pricing_.model().layers) - rebuilt : 0;
  return known_.of({&prices, layout.recompute, kept},
                   [&] { return work_of_microbatch(prices, layout.recompute, kept); });
}

LeastTimes WorkBounds::lower_bound(const MicrobatchWork& work, const Layout& layout, const BoundOrder& order) const {
  if (!order.backwards) return {};
  const auto microbatches = static_cast<double>(microbatches_of(pricing_.training(), layout));
  const bool waits = order.rank.size() == order.first_stage.size() && !order.split && !order.lanes;
  const double of_mean_rank = microbatches / layout.pipeline;
  const double of_step = waits ? 1 / (1 - std::pow(1 - 1 / microbatches, layout.pipeline)) : of_mean_rank;
  const auto lasting = [&](double times) {
    const std::chrono::duration<double, std::pico> time = (order.pairs ? work.computing : work.all) * times;
    return at_most_latest(kLessRounding * time.count());
  };
  return {.step = lasting(of_step), .busy = lasting(of_mean_rank)};
}

/// No layer counts as rebuilt where some are kept and their kinds differ.
MicrobatchWork WorkBounds::work_of_microbatch(const std::vector<LayerPrice>& prices, Recompute recompute, int kept) {
  std::vector<KindCount> counts = layers_;
  if (kept > 0) {
    const auto is_transformer = [&](const KindCount& layer) {
      return std::holds_alternative<TransformerLayer>(pricing_.kinds()[layer.kind]);
    };
    const auto transformer = std::ranges::find_if(counts, is_transformer);
    if (std::ranges::count_if(counts, is_transformer) > 1) return work_of_microbatch(prices, Recompute::kNone, 0);
    transformer->count -= kept;
    counts.push_back({.kind = transformer->kind + static_cast<int>(prices.size()), .count = kept});
  }
  const StagePasses passes = stage_passes(counts, with_kept_layers(prices), recompute, {});
  const auto sum = [&](auto seconds_of) {
    return seconds_of(passes.forward) +
           std::min(seconds_of(passes.backward), seconds_of(passes.input_grad) + seconds_of(passes.weight_grad));
  };
  return {.all = sum([](const PassPrice& pass) { return total(pass); }),
          .computing = sum([](const PassPrice& pass) { return pass.compute; })};
}

}}  // namespace plumb::planner
