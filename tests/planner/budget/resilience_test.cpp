#include "planner/budget/resilience.h"

#include <cmath>

#include <doctest/doctest.h>

#include "planner/budget/spares.h"
#include "tests/planner/budget/reliability_presets.h"

namespace plumb::test {

TEST_CASE("all nodes write a checkpoint side by side, at its best interval unless another is given") {
  const ReliabilitySpec spec = preset_reliability("llama-3");
  ResilienceQuestion question{.devices = 1024, .nodes = 128, .checkpoint_bytes = 1e12};
  const Resilience best = resilience(spec, question);
  CHECK(best.interruptions.checkpoint.count() == doctest::Approx(1e12 / (128 * 0.625e9)));
  CHECK(best.interval == best_interval(best.interruptions));
  CHECK(std::abs(best.goodput - best.simulated.goodput) < 3 * best.simulated.standard_error);
  question.interval = Seconds{3600};
  const Resilience hourly = resilience(spec, question);
  CHECK(hourly.interval == Seconds{3600});
  CHECK(hourly.goodput < best.goodput);
}

TEST_CASE("twice the devices are interrupted twice as often, and need more spares") {
  const ReliabilitySpec spec = preset_reliability("rsc-1");
  const auto on = [&](int nodes) {
    return resilience(spec, {.devices = 8 * nodes, .nodes = nodes, .checkpoint_bytes = 1e12});
  };
  const Resilience fewer = on(500), more = on(1000);
  CHECK(fewer.interruptions.mean_between / more.interruptions.mean_between == doctest::Approx(2));
  CHECK(more.spare_nodes == spare_nodes(6.5, kSpareProbability));  // 6.5 nodes a day, each repaired for a day
  CHECK(fewer.spare_nodes < more.spare_nodes);
}

TEST_CASE("without interruptions nothing is lost") {
  ReliabilitySpec spec = preset_reliability("rsc-1");
  spec.components.clear();
  const Resilience answer = resilience(spec, {.devices = 8, .nodes = 1, .checkpoint_bytes = 1e12});
  CHECK(answer.goodput == 1);
  CHECK(answer.simulated.goodput == 1);
  CHECK(answer.spare_nodes == 0);
}

}  // namespace plumb::test
