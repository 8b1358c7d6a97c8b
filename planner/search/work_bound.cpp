#include "planner/search/work_bound.h"

#include <algorithm>
#include <cmath>

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

MicrobatchWork WorkBounds::work(const Layout& layout) {
  const std::vector<InnerGroups>& groups = pricing_.placements(layout).inner;
  const bool alike = alike_.of(&groups, [&] {
    return std::ranges::all_of(groups, [&](const InnerGroups& other) { return other == groups.front(); });
  });
  if (!alike) return {};
  const std::vector<LayerPrice>& prices = pricing_.layer_prices(layout, groups.front());
  return known_.of({&prices, layout.recompute}, [&] { return work_of_microbatch(prices, layout.recompute); });
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

MicrobatchWork WorkBounds::work_of_microbatch(const std::vector<LayerPrice>& prices, Recompute recompute) {
  const StagePasses passes = stage_passes(layers_, prices, recompute, {});
  const auto sum = [&](auto seconds_of) {
    return seconds_of(passes.forward) +
           std::min(seconds_of(passes.backward), seconds_of(passes.input_grad) + seconds_of(passes.weight_grad));
  };
  return {.all = sum([](const PassPrice& pass) { return total(pass); }),
          .computing = sum([](const PassPrice& pass) { return pass.compute; })};
}

}}  // namespace plumb::planner
