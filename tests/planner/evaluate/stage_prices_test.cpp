#include "planner/evaluate/stage_prices.h"

#include <doctest/doctest.h>

#include "planner/evaluate/priced_layout.h"
#include "planner/search/predict.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
TEST_CASE("stages of the same layers are priced once, the first and the last by themselves") {
  Pricing pricing(small_gpt(), round_cluster(8), kSmallTraining);
  const Layout even{.pipeline = 8};
  const Schedule order = order_of(kSmallTraining, even);
  const StagePrices prices = price_stages(pricing, even, order, stage_order(order));
  CHECK(prices.kind_of_stage == std::vector<int>{0, 1, 1, 1, 1, 1, 1, 2});
  CHECK(prices.kinds.stages.size() == 3);
  CHECK(prices.links.size() == 14);

  const Layout uneven{.pipeline = 4, .split = {1, 3, 1, 3}};
  const Schedule four = order_of(kSmallTraining, uneven);
  CHECK(price_stages(pricing, uneven, four, stage_order(four)).kind_of_stage == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("what a simulation is given is the same, stage by stage") {
  Pricing pricing(small_gpt(), round_cluster(8), kSmallTraining);
  for (const Layout& layout :
       {Layout{.pipeline = 8}, Layout{.data = 2, .pipeline = 4, .zero = 1},
        Layout{.pipeline = 4, .chunks = 2, .recompute = Recompute::kFull, .schedule = "interleaved"},
        Layout{.tensor = 2, .pipeline = 4, .schedule = "zb-h1"}}) {
    CAPTURE(to_text(layout));
    const Schedule order = order_of(kSmallTraining, layout);
    const StagePrices prices = price_stages(pricing, layout, order, stage_order(order));
    const PricedLayout priced = price_layout(pricing, layout, order);
    REQUIRE(priced.costs.stages.size() == prices.kind_of_stage.size());
    for (std::size_t stage = 0; stage < priced.costs.stages.size(); ++stage) {
      for (const Op op : {Op::kForward, Op::kBackward, Op::kInputGrad, Op::kOptimizerStep}) {
        const auto at = [&](std::int32_t s) { return Action{.op = op, .stage = s}; };
        CHECK(duration_of(priced.costs, at(static_cast<std::int32_t>(stage))) ==
              duration_of(prices.kinds, at(prices.kind_of_stage[stage])));
      }
      CHECK(priced.costs.stages[stage].memory.forward_bytes ==
            prices.kinds.stages[prices.kind_of_stage[stage]].memory.forward_bytes);
    }
    for (const StageLink& link : prices.links)
      CHECK(link_between(priced.costs, link.source, link.destination).latency == link.cost.latency);
  }
}

TEST_CASE("an order's operations and hops do not depend on its micro-batches") {
  const StageOrder few = stage_order(order_of({.global_batch = 8, .sequence = 512}, {.pipeline = 4}));
  const StageOrder many = stage_order(order_of({.global_batch = 64, .sequence = 512}, {.pipeline = 4}));
  CHECK(few.operations == many.operations);
  CHECK(few.hops == many.hops);
  CHECK(few.parts == 4);
  CHECK(!few.copies);
}

}  // namespace plumb::test
