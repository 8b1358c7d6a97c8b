#include "planner/evaluate/stage_passes.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a stage's passes are its layers', by kind; recomputation stands at the head of the backward") {
  LayerPrice light;
  light.forward.compute = Seconds{1};
  light.input_grad.compute = light.weight_grad.compute = Seconds{2};
  light.rebuild_full.compute = Seconds{1};
  LayerPrice heavy;
  heavy.forward.compute = Seconds{10};
  heavy.forward.collective_seconds[0][0] = Seconds{0.5};
  heavy.forward.collective_bytes[0][0] = 7;
  heavy.input_grad.compute = heavy.weight_grad.compute = Seconds{20};
  const std::vector<KindCount> counts = {{.kind = 0, .count = 3}, {.kind = 1, .count = 2}};

  const StagePasses passes = stage_passes(counts, {light, heavy}, Recompute::kFull, {});
  CHECK(passes.forward.compute.count() == 23);
  CHECK(passes.forward.collective_seconds[0][0].count() == 1);
  CHECK(passes.forward.collective_bytes[0][0] == 14);
  CHECK(passes.rebuild.compute.count() == 3);
  CHECK(passes.input_grad.compute.count() == 46 + 3);
  CHECK(passes.weight_grad.compute.count() == 46);
  CHECK(passes.backward.compute.count() == 92 + 3);
  CHECK(stage_passes(counts, {light, heavy}, Recompute::kNone, {}).backward.compute.count() == 92);
  CHECK(stage_passes(counts, {light, heavy}, Recompute::kFull, {.recompute_actions = true}).backward.compute.count() ==
        92);
}

TEST_CASE("each operation that lasts any time lasts the overhead of an action longer") {
  StagePasses passes;
  passes.forward.compute = Seconds{2};
  StageCosts costs;
  price_compute(costs, passes, Seconds{0.25});
  CHECK(costs.segments[static_cast<std::size_t>(Op::kForward)].front().front().seconds.count() == 2.25);
  CHECK(costs.segments[static_cast<std::size_t>(Op::kRecompute)].front().empty());
}

}  // namespace plumb::test
