#include "planner/search/work_bound.h"

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/search/layout_tree.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("no simulated step is faster than the work of its layers allows") {
  const TrainingSpec own{.global_batch = 16, .sequence = 128};
  TrainingSpec framework = own;
  framework.stack = parse_stack(source_text("tools/specs/stacks/megatron-core.json"), "megatron-core");
  framework.stack->host_sharpness = 4;  // a stage's pass is shorter than the sum of its layers'
  framework.stack->can = {};
  for (const TrainingSpec& training : {own, framework}) {
    Pricing pricing(small_gpt(), round_cluster(8), training);
    WorkBounds work(pricing);
    int tight = 0, tight_busy = 0;
    for (const Layout& layout : enumerate_layouts(pricing, {}).layouts) {
      CAPTURE(to_text(layout));
      const LeastTimes bound = work.lower_bound(work.work(layout), layout, bound_order(order_of(training, layout)));
      const Simulation simulated = evaluate_sums(pricing, layout).simulation;
      CHECK(bound.step <= simulated.makespan);
      CHECK(bound.busy <= mean_busy(simulated));
      if (to_seconds(bound.step) > 0.9 * to_seconds(simulated.makespan)) ++tight;
      if (to_seconds(bound.busy) > 0.9 * to_seconds(mean_busy(simulated))) ++tight_busy;
    }
    CHECK(tight > 20);  // a bound of 0 would pass the rest
    CHECK(tight_busy > 20);
  }
}

TEST_CASE("layers that are rebuilt in part bound the step by those that every split rebuilds") {
  TrainingSpec training{.global_batch = 8, .sequence = 128};
  training.stack = parse_stack(source_text("tools/specs/stacks/megatron-core.json"), "megatron-core");
  training.stack->host_sharpness = 4;
  Pricing pricing(small_gpt(), round_cluster(4), training);
  LayoutSpace space =
      parse_layout_space("zero=0,shard=0,offload=none,group=0,recompute=full,schedule=1f1b|interleaved");
  space.wide = true;
  Skeletons skeletons;
  LayoutTree tree(pricing, space, skeletons);
  WorkBounds work(pricing);
  int above_none = 0;
  for (const Layout& family : tree.families().layouts) {
    for (const Layout& core : tree.cores(family).layouts) {
      if (core.recompute_layers == 0) continue;
      const MicrobatchWork of_core = work.work(core, tree.fewest_rebuilt_layers(core));
      const SimTime bound = work.lower_bound(of_core, core, skeletons.find(core)->bound).step;
      above_none += of_core.all > work.work(core, 0).all ? 1 : 0;
      for (const Layout& layout : tree.layouts(core).layouts) {
        CAPTURE(to_text(layout));
        CHECK(bound <= evaluate_sums(pricing, layout).simulation.makespan);
      }
    }
  }
  CHECK(above_none > 20);
}

TEST_CASE("one stage a rank fills and drains the pipeline, whatever the split") {
  const TrainingSpec training{.global_batch = 4, .sequence = 128};
  Pricing pricing(small_gpt(), round_cluster(4), training);
  WorkBounds work(pricing);
  const auto bound = [&](const Layout& layout) {
    return seconds(work.lower_bound(work.work(layout), layout, bound_order(order_of(training, layout))).step);
  };
  const Layout plain{.pipeline = 4};
  const Layout interleaved{.pipeline = 4, .chunks = 2, .schedule = "interleaved"};
  // m T / p and T / (1 - (1 - 1/m)^p) with m = p = 4
  CHECK(bound(plain) / bound(interleaved) == doctest::Approx(1 / (1 - 0.75 * 0.75 * 0.75 * 0.75)));
  for (const char* split : {"split=2:2:2:2", "split=1:3:3:1", "split=3:2:2:1"}) {
    Layout cut = layout_of(parse_layout(std::string("pp=4,") + split));
    CHECK(bound(cut) <= step_time(evaluate_sums(pricing, cut).simulation).count());
  }
}

TEST_CASE("an order without backwards has no bound by work") {
  const TrainingSpec training{.global_batch = 4, .sequence = 128};
  Pricing pricing(small_gpt(), round_cluster(4), training);
  const Layout layout{.pipeline = 4, .schedule = "forward-only"};
  WorkBounds work(pricing);
  CHECK(work.work(layout).all > Seconds{0});
  CHECK(work.lower_bound(work.work(layout), layout, bound_order(order_of(training, layout))).step == SimTime{0});
}

}  // namespace plumb::test
