#include "planner/search/bounds.h"

#include <numeric>

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/search/layout_tree.h"
#include "planner/search/objective.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("no simulated step is faster than its bound, and none holds less than the issue order does") {
  ModelSpec model = small_gpt();
  model.tied_embeddings = true;
  const TrainingSpec training{.global_batch = 16, .sequence = 128};
  const ClusterSpec cluster = round_cluster(8);
  Pricing pricing(model, cluster, training);
  int tight = 0, tight_busy = 0;
  const Enumeration found = enumerate_layouts(pricing, {});
  REQUIRE(found.layouts.size() > 500);
  for (const Layout& layout : found.layouts) {
    const Schedule order = order_of(training, layout);
    const Evaluation predicted = evaluate(pricing, layout, price_layout(pricing, layout, order), order,
                                          {.simulation = {.record_timeline = false}});
    const SimTime bound = step_time_lower_bound(predicted.costs, order, microbatches_of(training, layout));
    CAPTURE(to_text(layout));
    CHECK(bound <= predicted.simulation.makespan);
    const BoundOrder facts = bound_order(order);
    std::vector<int> kinds(predicted.costs.stages.size());
    std::iota(kinds.begin(), kinds.end(), 0);
    const SimTime busy = busy_lower_bound({predicted.costs, kinds}, facts, microbatches_of(training, layout));
    CHECK(busy <= mean_busy(predicted.simulation));
    if (to_seconds(busy) > 0.9 * to_seconds(mean_busy(predicted.simulation))) ++tight_busy;
    if (to_seconds(bound) > 0.9 * to_seconds(predicted.simulation.makespan)) ++tight;
    const std::vector<std::int64_t> peaks = memory_in_issue_order(predicted.costs, order);
    // Besides, a rank holds what it has received for its next actions.
    const std::int64_t received = layout.pipeline > 1 ? 2 * predicted.costs.stages[0].activation_message_bytes : 0;
    for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
      const std::int64_t simulated = predicted.simulation.peak_memory_bytes[rank];
      CHECK(peaks[rank] <= simulated);
      if (layout.zero < 3) CHECK(simulated <= peaks[rank] + received);
    }
  }
  CHECK(tight > 100);  // a bound of 0 would pass the rest
  CHECK(tight_busy > 50);
}

TEST_CASE("a shortfall names the rank that lacks most, of what a device has besides its reserve") {
  DeviceSpec device{.memory_bytes = 1000, .reserved_bytes = 100};
  CHECK(!memory_shortfall({900, 800}, device));
  const auto shortfall = memory_shortfall({950, 1200, 901}, device);
  REQUIRE(shortfall);
  CHECK(shortfall->rank == 1);
  CHECK(shortfall->missing_bytes == 300);
  CHECK(shortfall->available_bytes == 900);
}

}  // namespace plumb::test
