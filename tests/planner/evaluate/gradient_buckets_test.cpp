#include "planner/evaluate/gradient_buckets.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/evaluate/evaluation.h"
#include "planner/search/bounds.h"
#include "planner/search/layout_conflict.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

/// 10, 20 and 30 parameters, the middle ones of experts; 4 s, 2 s and 1 s.
const std::vector<LayerGradient> kLayers = {{10, 0, Seconds{4}}, {0, 20, Seconds{2}}, {30, 0, Seconds{1}}};

using Buckets = std::vector<GradientBucket>;

Evaluation predicted(Layout layout) {
  const ModelSpec model = preset_model("llama-3-8b");
  const ClusterSpec cluster = preset_cluster("h100:32");
  Pricing pricing(model, cluster, {.global_batch = 64, .sequence = 2048});
  const Schedule order = order_of(pricing.training(), layout);
  return evaluate(pricing, layout, price_layout(pricing, layout, order), order);
}

Layout small_layout(std::int64_t bucket_mib) {
  return {.data = 4, .tensor = 2, .pipeline = 4, .zero = 1, .microbatch = 1, .bucket_mib = bucket_mib};
}

}  // namespace

TEST_SUITE("gradient_buckets") {
  TEST_CASE("buckets fill from the last layer on, and each is complete when its last layer is") {
    CHECK(gradient_buckets(kLayers, 30, Seconds{7}) == Buckets{{30, 0, Seconds{1}, 1}, {10, 20, Seconds{7}, 2}});
  }

  TEST_CASE("a layer larger than a bucket is one bucket, and one that holds all is complete at the end") {
    CHECK(gradient_buckets(kLayers, 1, Seconds{7}) ==
          Buckets{{30, 0, Seconds{1}, 1}, {0, 20, Seconds{3}, 1}, {10, 0, Seconds{7}, 1}});
    CHECK(gradient_buckets(kLayers, 1000, Seconds{7}) == Buckets{{40, 20, Seconds{7}, 3}});
  }

  TEST_CASE("the layers' shares are stretched to what the stage's backward lasts") {
    CHECK(gradient_buckets(kLayers, 30, Seconds{14}) == Buckets{{30, 0, Seconds{2}, 1}, {10, 20, Seconds{14}, 2}});
  }

  TEST_CASE("buckets without size or without layers are refused") {
    CHECK_THROWS_AS(gradient_buckets(kLayers, 0, Seconds{7}), SpecError);
    CHECK_THROWS_AS(gradient_buckets({}, 1, Seconds{7}), SpecError);
  }

  TEST_CASE("a layout with buckets reduces the same bytes inside the last backward, and its step is shorter") {
    const Evaluation behind = predicted(small_layout(0));
    const Evaluation inside = predicted(small_layout(25));
    CHECK(behind.priced.buckets.empty());
    const std::vector<int> buckets = buckets_by_stage(inside.priced);
    for (std::size_t s = 0; s < inside.lowered.stages.size(); ++s) {
      const auto reduce = static_cast<std::size_t>(Op::kReduceGrad);
      const StageCosts& stage = inside.costs.stages[s];
      std::int64_t bytes = 0;
      for (const std::vector<Segment>& segments : stage.segments[reduce]) bytes += segments.front().bytes;
      CHECK(bytes == behind.costs.stages[s].segments[reduce].front().front().bytes);
      CHECK(static_cast<int>(stage.bucket_offsets.size()) == buckets[s]);
      CHECK(buckets[s] > 1);
    }
    CHECK(inside.simulation.makespan < behind.simulation.makespan);
  }

  TEST_CASE("the last bucket is complete when the backward ends, whole or split, with recomputation or without") {
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        Layout layout = small_layout(25);
        layout.schedule = schedule;
        layout.recompute = recompute;
        const CostTable costs = predicted(layout).costs;
        const Op host = layout.schedule == "1f1b" ? Op::kBackward : Op::kWeightGrad;
        for (int s = 0; s < 4; ++s) {
          const Seconds end = to_seconds(duration_of(costs, {.op = host, .stage = s}));
          CHECK(costs.stages[s].bucket_offsets.back().count() == doctest::Approx(end.count()));
        }
      }
    }
  }

  TEST_CASE("the bound of the search stays below a step whose reductions are hidden") {
    for (const std::int64_t bucket_mib : {0, 25, 400}) {
      const Layout layout = small_layout(bucket_mib);
      const Evaluation result = predicted(layout);
      const Schedule order = make_schedule("1f1b", {.ranks = 4, .microbatches = 16});
      CHECK(step_time_lower_bound(result.costs, order, 16) <= result.simulation.makespan);
    }
  }

  TEST_CASE("buckets are a layout's, in text and JSON, and do not go with ZeRO 2") {
    const Layout layout = layout_of(parse_layout("dp=4,tp=2,pp=4,zero=2,bucket_mib=25"));
    CHECK(layout.bucket_mib == 25);
    CHECK(layout_of(parse_layout(to_text(layout))) == layout);
    CHECK(layout_of(layout_from_json(to_json(layout), "layout")) == layout);
    const auto conflict =
        layout_conflict(preset_model("llama-3-8b"), {.global_batch = 64, .sequence = 2048}, 32, layout);
    REQUIRE(conflict.has_value());
    CHECK(conflict->find("bucket_mib=25") != std::string::npos);
  }

  TEST_CASE("the buckets of a framework stand in its stack") {
    const TrainingSpec training{.global_batch = 64, .sequence = 2048, .stack = StackSpec{.name = "any"}};
    const Layout layout = layout_of(parse_layout("dp=4,tp=2,pp=4,zero=1,bucket_mib=25"));
    const auto conflict = layout_conflict(preset_model("llama-3-8b"), training, 32, layout);
    REQUIRE(conflict.has_value());
    CHECK(conflict->find("leave bucket_mib out") != std::string::npos);
  }

  TEST_CASE("stages with copies, whose gradients are summed once, have no buckets") {
    Layout layout = small_layout(25);
    layout.schedule = "chimera";
    layout.zero = 0;
    CHECK(predicted(layout).priced.buckets.empty());
  }
}
}  // namespace plumb::test
