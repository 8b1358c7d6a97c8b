#include "planner/search/whatif.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/evaluate/layout_order.h"
#include "planner/search/evaluate_plan.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

Plan plan_of_16() {
  return {.model = small_gpt(),
          .cluster = preset_cluster("h100:16"),
          .training = {.global_batch = 32, .sequence = 512},
          .layout = {.data = 8, .pipeline = 2}};
}

}  // namespace

TEST_CASE("a variation is a key and its values") {
  const Variation variation = parse_variation("layout.recompute=none,full");
  CHECK(variation.key == "layout.recompute");
  CHECK(variation.values == std::vector<nlohmann::json>{"none", "full"});
  CHECK(parse_variation("a=1,2.5").values == std::vector<nlohmann::json>{1, 2.5});
  for (const char* bad : {"", "a", "a=", "=1", "a=1,,2"}) {
    check_refused<SpecError>([&] { parse_variation(bad); }, "vary", "");
  }
}

TEST_CASE("each value gives a row, in order, and the table is the product of the keys") {
  const auto rows = whatif(plan_of_16(), {parse_variation("network.bandwidth_gb_per_s=5,50"),
                                          parse_variation("device.memory_gib=40,80,0.2")});
  REQUIRE(rows.size() == 6);
  CHECK(rows[0].values[0].first == "cluster.network.bandwidth_gb_per_s");
  CHECK(rows[0].values[0].second == 5);
  CHECK(rows[1].values[1].second == 80);
  CHECK(rows[3].values[0].second == 50);
  CHECK(rows[0].prediction->step.makespan > rows[3].prediction->step.makespan);  // slower gradients
  CHECK(rows[0].prediction->step.makespan ==
        rows[1].prediction->step.makespan);  // memory that suffices does not change time
  CHECK(!rows[2].prediction);
  CHECK(rows[2].infeasible.find("lacks") != std::string::npos);
}

TEST_CASE("a row is the plan with that value") {
  Plan plan = plan_of_16();
  const auto rows = whatif(plan, {parse_variation("training.global_batch=64")});
  plan.training.global_batch = 64;
  CHECK(rows[0].prediction == prediction_of(evaluate(plan)));
}

TEST_CASE("any part of the plan can be varied by its dotted path") {
  for (const char* key : {"model.layers=4,12", "layers=4,12", "seq=256,384", "layout.mbs=1,2", "mbs=1,2", "pp=2",
                          "dp=8", "layout.recompute=full", "layout.schedule=gpipe", "precision=fp16",
                          "device.peak_tflops.bf16=400", "cluster.node.latency_us=1", "layout.sp=false"}) {
    CAPTURE(key);
    for (const WhatIfRow& row : whatif(plan_of_16(), {parse_variation(key)})) CHECK(row.prediction);
  }
  CHECK(whatif(plan_of_16(), {parse_variation("layout.schedule=gpipe")})[0].layout.schedule == "gpipe");
}

TEST_CASE("a layout that no longer fits its cluster is a row that says so; replanned, it is another layout") {
  const auto kept = whatif(plan_of_16(), {parse_variation("devices=8,16"), parse_variation("dp=8")});
  CHECK(!kept[0].prediction);
  CHECK(kept[0].infeasible.find("product be 8") != std::string::npos);
  CHECK(kept[1].prediction);
  const auto replanned = whatif(plan_of_16(), {parse_variation("devices=8,16")}, {.replan = true});
  CHECK(replanned[0].prediction);
  CHECK(replanned[1].prediction->step.makespan < replanned[0].prediction->step.makespan);
  CHECK(replanned[1].prediction->step.makespan <= kept[1].prediction->step.makespan);
}

TEST_CASE("replicas follow the devices and the other degrees") {
  const auto by_devices = whatif(plan_of_16(), {parse_variation("gpus=8,16,32")});
  const int of_a_replica = 16 / plan_of_16().layout.data;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(by_devices[i].prediction);
    CHECK(by_devices[i].layout.data == (8 << i) / of_a_replica);
  }
  for (const WhatIfRow& row : whatif(plan_of_16(), {parse_variation("tp=1,2,4")}))
    CHECK(row.layout.data * row.layout.tensor * row.layout.pipeline == 16);
}

TEST_CASE("replanning keeps the layout keys that vary") {
  const auto rows = whatif(plan_of_16(), {parse_variation("layout.pp=1,2,4")}, {.replan = true});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].layout.pipeline == 1);
  CHECK(rows[1].layout.pipeline == 2);
  CHECK(rows[2].layout.pipeline == 4);
}

TEST_CASE("a part is varied as a whole before the fields inside of it") {
  const nlohmann::json h100 = to_json(resize(preset_cluster("h100"), 16)),
                       a100 = to_json(resize(preset_cluster("a100"), 16));
  const Variation clusters{.key = "cluster", .values = {"h100", "a100"}, .parts = {h100, a100}};
  const auto rows = whatif(plan_of_16(), {parse_variation("gpus=16,32"), clusters}, {.replan = true});
  REQUIRE(rows.size() == 4);
  CHECK(rows[1].values ==
        std::vector<std::pair<std::string, nlohmann::json>>{{"cluster.devices", 16}, {"cluster", "a100"}});
  CHECK(rows[0].prediction->step.makespan < rows[1].prediction->step.makespan);
  CHECK(rows[3].prediction->step.makespan < rows[1].prediction->step.makespan);  // twice the devices of the same kind
  Plan other = plan_of_16();
  other.model = preset_model("gpt2");
  const Variation models{.key = "model", .values = {"gpt2"}, .parts = {nlohmann::json(to_json(other.model))}};
  CHECK(whatif(plan_of_16(), {models})[0].prediction == prediction_of(evaluate(other)));
}

TEST_CASE("a stack that was assumed is assumed anew, unless it varies itself") {
  StackSpec slow{.name = "slow"};
  slow.kernel_launch = Seconds{1e-3};
  Plan plan = plan_of_16();
  plan.training.stack = slow;
  plan.training.stack_assumed = "a test";
  StackLibrary library;
  for (const char* name : {"nemo", "megatron-core", "torchtitan"})
    library.emplace(name, parse_stack(source_text(std::string("tools/specs/stacks/") + name + ".json"), name));
  const Variation batch = parse_variation("global_batch=32");
  const auto kept = whatif(plan, {batch}), assumed = whatif(plan, {batch}, {.assumable = library});
  CHECK(assumed[0].prediction->step.makespan < kept[0].prediction->step.makespan);
  const Variation stack{.key = "stack", .values = {"slow"}, .parts = {nlohmann::json(to_json(slow))}};
  CHECK(whatif(plan, {stack}, {.assumable = library})[0].prediction == kept[0].prediction);
}

TEST_CASE("a key that is nowhere, or a label, or a value that is refused there is named") {
  const auto refused = [](const char* variation, const char* place, const char* part) {
    CAPTURE(variation);
    check_refused<SpecError>([&] { whatif(plan_of_16(), {parse_variation(variation)}); }, place, part);
  };
  refused("network.bandwith_gb_per_s=1", "bandwith", "cluster.network.bandwidth_gb_per_s");
  for (const char* label :
       {"name=x", "model.name=gpt2", "cluster.name=b200", "cluster.device.name=B200", "model.source=x"})
    refused(label, "vary", "label changes no answer");
  refused("device.memory_gib=0", "memory_gib", "above 0");
  refused("model.hidden=big", "hidden", "number");
  refused("layout.tp=0", "tp", "1 or more");
  Plan own = plan_of_16();
  own.order = order_of(own.training, own.layout);
  check_refused<SpecError>([&] { whatif(own, {}, {.replan = true}); }, "schedule", "replan");
}

TEST_CASE("a table of more rows than anybody reads is refused before the first is worked out") {
  Variation many{.key = "training.global_batch", .values = {}};
  for (int batch = 1; batch <= 200; ++batch) many.values.emplace_back(batch);
  Variation more{.key = "training.seq", .values = many.values};
  check_refused<SpecError>([&] { whatif(plan_of_16(), {many, more}); }, "training.seq", "more than 10000 rows");
}

TEST_CASE("each row has the intervals that are asked for, of its own plan") {
  std::vector<std::int64_t> batches;
  const WhatIfOptions options{.intervals = [&](const Plan& plan, const StepSums& predicted) {
    batches.push_back(plan.training.global_batch);
    const double seconds = step_time(predicted).count();
    return PredictionIntervals{.step_time = {seconds / 2, 2 * seconds}};
  }};
  const std::vector<WhatIfRow> rows = whatif(plan_of_16(), {parse_variation("training.global_batch=16,32")}, options);
  REQUIRE(rows.size() == 2);
  CHECK(batches == std::vector<std::int64_t>{16, 32});
  for (const WhatIfRow& row : rows) {
    REQUIRE(row.prediction);
    REQUIRE(row.prediction->intervals);
    CHECK(row.prediction->intervals->step_time.high == 2 * step_time(row.prediction->step).count());
  }
}

}  // namespace plumb::test
