#include "planner/search/moved_activations.h"

#include <map>

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/host_offload.h"
#include "planner/search/layout_tree.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

using Gone = std::map<std::int32_t, std::int64_t>;  // [stage] activations that go

Gone gone_in_the_whole(const TrainingSpec& training, const Layout& layout) {
  Gone gone;
  for (const std::vector<Action>& actions : with_offload(order_of(training, layout), layout).ranks)
    for (const Action& action : actions)
      if (takes_away(action.op)) ++gone[action.stage];
  return gone;
}

}  // namespace

TEST_CASE("of activations that move, short orders count nearly all of whole ones and none too many") {
  int moving = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.made_for_costs || !entry.unpriced.empty()) continue;
    for (const int ranks : {2, 4, 6}) {
      for (const int chunks : {1, 2, 3}) {
        for (const int microbatches : {7, 36, 61}) {
          for (const bool offloads : {false, true}) {
            const TrainingSpec training{.global_batch = microbatches, .sequence = 128};
            Layout layout{.pipeline = ranks, .chunks = chunks};
            layout.offload.activations = offloads;
            layout.schedule = entry.name;
            Gone whole;
            try {
              whole = gone_in_the_whole(training, layout);
            } catch (const ScheduleError&) {
              continue;  // it has no order of these sizes
            }
            Gone counted;
            const MovedActivations moved(training);
            for (const auto& [kind, count] : moved.of(layout))
              if (!kind.returns) counted[kind.stage] += count;
            CAPTURE(to_text(layout));
            CAPTURE(microbatches);
            for (const auto& [stage, count] : whole) {
              CHECK(counted[stage] <= count);
              CHECK(counted[stage] >= count - microbatches / ranks);
            }
            CHECK(counted.size() <= whole.size());
            moving += whole.empty() ? 0 : 1;
          }
        }
      }
    }
  }
  CHECK(moving > 100);
}

TEST_CASE(
    "no simulated step is faster than its bound with what moves, which is near where the link to the host binds") {
  const ModelSpec model = small_gpt();
  const TrainingSpec training{.global_batch = 64, .sequence = 128};
  for (const double bytes_per_second : {1e9, 10e9, 40e9}) {
    ClusterSpec cluster = round_cluster(8);
    cluster.host = {.memory_bytes = std::int64_t{64} << 30,
                    .memory_bytes_per_second = 100e9,
                    .device_bytes_per_second = bytes_per_second};
    Pricing pricing(model, cluster, training);
    const MovedActivations moved(training);
    LayoutSpace space;
    space.offload = {.named = {{.activations = true}}};
    space.pipeline = {.named = {4, 8}};
    int looked_at = 0, near = 0;
    for (const Layout& layout : enumerate_layouts(pricing, space).layouts) {
      const Schedule order = order_of(training, layout);
      const PricedLayout priced = price_layout(pricing, layout, order);
      const Evaluation predicted = evaluate(pricing, layout, priced, order, {.simulation = {.record_timeline = false}});
      const StageTable stages = stage_table(priced);
      const BoundOrder facts = bound_order(order);
      const MoveTimes moving = moved.times(layout, stages, facts);
      const SimTime bound =
          std::max(moving.fullest_channel,
                   step_time_lower_bound(stages, facts, microbatches_of(training, layout), moving.waits));
      CAPTURE(to_text(layout));
      CHECK(bound <= predicted.simulation.makespan);
      ++looked_at;
      near += to_seconds(bound) > 0.85 * to_seconds(predicted.simulation.makespan) ? 1 : 0;
    }
    CAPTURE(bytes_per_second);
    CAPTURE(looked_at);
    CHECK(2 * near > looked_at);
  }
}

}  // namespace plumb::test
