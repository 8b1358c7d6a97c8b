#include "planner/evaluate/unequal_stages.h"

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

const Layout kTwoStages{.tensor = 2, .pipeline = 2, .microbatch = 2};

UnequalStages priced_stages(const std::vector<RankMesh>& meshes, const Layout& layout = kTwoStages,
                            std::optional<ReshardingKind> kind = {}) {
  Pricing pricing(preset_model("llama-3.2-1b"), round_cluster(8), kSmallTraining);
  return price_unequal_stages(pricing, layout, order_of(kSmallTraining, layout), meshes, kind);
}

Seconds link_time(const UnequalStages& stages, int from, int to, std::int64_t bytes) {
  const LinkCost& link = stages.costs.links.at({from, to});
  return link.latency + Seconds{static_cast<double>(bytes) / link.bytes_per_second};
}

}  // namespace

TEST_CASE("meshes of one shape are the layout itself") {
  const UnequalStages alike = priced_stages({{.data = 1, .tensor = 2}, {.data = 1, .tensor = 2}});
  Pricing pricing(preset_model("llama-3.2-1b"), round_cluster(8), kSmallTraining);
  const CostTable plain = cost_table(price_layout(pricing, kTwoStages, order_of(kSmallTraining, kTwoStages)));
  CHECK(alike.handovers.empty());
  for (std::size_t stage = 0; stage < 2; ++stage) {
    for (const Op op : {Op::kForward, Op::kBackward, Op::kOptimizerStep}) {
      const Action action{.op = op, .stage = static_cast<std::int32_t>(stage)};
      CHECK(duration_of(alike.costs, action) == duration_of(plain, action));
    }
    CHECK(alike.costs.stages[stage].memory.forward_bytes == plain.stages[stage].memory.forward_bytes);
  }
}

TEST_CASE("a rank with replicas is priced as a layout of its degrees and half the sequences") {
  const UnequalStages stages = priced_stages({{.data = 1, .tensor = 2}, {.data = 2, .tensor = 1}});
  const Layout second = stages.layouts[1];
  CHECK(std::tuple(second.data, second.tensor, second.microbatch) == std::tuple(2, 1, 1));
  Pricing pricing(preset_model("llama-3.2-1b"), round_cluster(8), kSmallTraining);
  const CostTable replicated = cost_table(price_layout(pricing, second, order_of(kSmallTraining, kTwoStages)));
  const Action backward{.op = Op::kBackward, .stage = 1}, reduce{.op = Op::kReduceGrad, .stage = 1};
  CHECK(duration_of(stages.costs, backward) == duration_of(replicated, backward));
  CHECK(duration_of(stages.costs, reduce) == duration_of(replicated, reduce));
  CHECK(duration_of(stages.costs, reduce) > SimTime{0});
  CHECK(duration_of(stages.costs, {.op = Op::kReduceGrad, .stage = 0}) == SimTime{0});  // no replicas
}

TEST_CASE("messages between meshes last as long as their resharding, both ways") {
  const std::vector<RankMesh> meshes{{.data = 1, .tensor = 2}, {.data = 2, .tensor = 1}};
  for (const auto kind : {ReshardingKind::kDirect, ReshardingKind::kAllGather, ReshardingKind::kBroadcast}) {
    const UnequalStages stages = priced_stages(meshes, kTwoStages, kind);
    REQUIRE(stages.handovers.size() == 2);
    for (const Handover& handover : stages.handovers) {
      CHECK(handover.chosen.kind == kind);
      CHECK(handover.bytes == 2 * 512 * preset_model("llama-3.2-1b").hidden * 2);
      CHECK(link_time(stages, handover.source, handover.destination, handover.bytes).count() ==
            doctest::Approx(handover.chosen.time.count()).epsilon(1e-9));
    }
    CHECK(stages.costs.stages[0].activation_message_bytes == stages.handovers[0].bytes);
    CHECK(stages.costs.stages[1].gradient_message_bytes == stages.handovers[0].bytes);
  }
  const UnequalStages best = priced_stages(meshes), direct = priced_stages(meshes, kTwoStages, ReshardingKind::kDirect);
  for (std::size_t i = 0; i < 2; ++i) CHECK(best.handovers[i].chosen.time <= direct.handovers[i].chosen.time);
}

TEST_CASE("meshes that cannot be are refused") {
  check_refused<SpecError>([] { priced_stages({{.tensor = 2}}); }, "1 pipeline ranks", "give each one");
  check_refused<SpecError>([] { priced_stages({{}, {.data = 0}}); }, "pipeline rank 1 has 0 x 1", "at least one");
  check_refused<SpecError>([] { priced_stages({{}, {.data = 4}}); }, "4 data ranks", "another mesh or micro-batch");
  check_refused<SpecError>([] { priced_stages({{.tensor = 8}, {.tensor = 1}}); }, "9 devices", "has 8");
  check_refused<SpecError>(
      [] {
        Pricing pricing(preset_model("mixtral-nano"), round_cluster(8), kSmallTraining);
        price_unequal_stages(pricing, kTwoStages, order_of(kSmallTraining, kTwoStages), {{}, {.tensor = 2}}, {});
      },
      "mixtures of experts", "give all stages one");
}

}  // namespace plumb::test
