#include "planner/shard/graph_pipeline.h"

#include <algorithm>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test { namespace {

using nlohmann::json;

/// GPT as Alpa trains it: sequences of 1024 tokens, 51200 words.
ModelSpec gpt(int hidden, int layers, int heads) {
  return model_from_json(json::parse(fmt::format(R"({{"name": "gpt", "blocks": {{"layer": {{"nodes": [
      {{"name": "norm1", "op": "layer_norm"}}, {{"name": "attention", "op": "attention", "heads": {2}, "causal": true}},
      {{"name": "add1", "op": "add", "inputs": ["attention", "@input"]}}, {{"name": "norm2", "op": "layer_norm"}},
      {{"name": "up", "op": "linear", "out": {3}, "activation": "gelu"}}, {{"name": "down", "op": "linear", "out": {0}}},
      {{"name": "add2", "op": "add", "inputs": ["down", "add1"]}}]}}}},
    "nodes": [{{"name": "tokens", "op": "input", "tokens": 1024}},
      {{"name": "words", "op": "embedding", "vocab": 51200, "hidden": {0}}}, {{"op": "positions", "rows": 1024}},
      {{"name": "layers", "block": "layer", "repeat": {1}}}, {{"op": "layer_norm"}},
      {{"op": "linear", "out": 51200, "bias": false, "tied_to": "words"}}, {{"op": "loss"}}]}})",
                                                 hidden, layers, heads, 4 * hidden)),
                         "gpt");
}

const TrainingSpec kAlpaTraining{.global_batch = 1024, .sequence = 1, .precision = Precision::kFp16};

TEST_CASE("the pipeline of GPT 2.6B on 8 V100 is at least as good as Alpa's published one under Alpa's objective") {
  // Alpa's artifact: three stages on 2, 2 and 4 GPUs. It does not say which layers they hold: the best cut counts.
  Pricing pricing(gpt(2560, 32, 32), preset_cluster("p3:8"), kAlpaTraining);
  PipelinePlanner planner({{&pricing}}, {.samples = 8, .microbatches = 128, .clusters = 8, .uses_all_devices = true});
  const auto ours = planner.fastest();
  REQUIRE(ours.has_value());
  Seconds published{std::numeric_limits<double>::infinity()};
  for (int a = 1; a + 2 <= planner.clusters(); ++a)
    for (int b = a + 1; b < planner.clusters(); ++b)
      if (const auto theirs = planner.of_stages({{.begin = 0, .end = a, .devices = 2},
                                                 {.begin = a, .end = b, .devices = 2},
                                                 {.begin = b, .end = planner.clusters(), .devices = 4}}))
        published = std::min(published, theirs->objective);
  REQUIRE(published.count() < std::numeric_limits<double>::infinity());
  CHECK(ours->objective <= published * (1 + 1e-12));
  int devices = 0;
  for (const StagePlan& stage : ours->stages) devices += stage.devices;
  CHECK(devices == 8);
}

/// A published plan of Alpa's: equal stages, each on so many GPUs.
struct PublishedPlan {
  const char* cluster;
  int hidden, layers, heads;
  int stages, devices;
  int clusters;
};

void check_not_worse(const PublishedPlan& plan) {
  Pricing pricing(gpt(plan.hidden, plan.layers, plan.heads), preset_cluster(plan.cluster), kAlpaTraining);
  PipelinePlanner planner({{&pricing}},
                          {.samples = 8, .microbatches = 128, .clusters = plan.clusters, .uses_all_devices = true});
  const auto ours = planner.fastest();
  REQUIRE(ours.has_value());
  std::vector<PipelinePlanner::NamedStage> stages;
  for (int i = 0; i < plan.stages; ++i)
    stages.push_back({.begin = i * plan.clusters / plan.stages,
                      .end = (i + 1) * plan.clusters / plan.stages,
                      .devices = plan.devices});
  const auto theirs = planner.of_stages(stages);
  REQUIRE(theirs.has_value());
  CHECK(ours->objective <= theirs->objective * (1 + 1e-12));
}

TEST_CASE("the pipeline of GPT 6.7B on 16 V100 is at least as good as Alpa's two stages of 8") {
  check_not_worse({"p3:16", 4096, 32, 32, 2, 8, 8});
}

TEST_SUITE("oracle") {
  TEST_CASE("the pipeline of GPT 15B on 32 V100 is at least as good as Alpa's four stages of 8") {
    check_not_worse({"p3:32", 5120, 48, 40, 4, 8, 8});
  }

  TEST_CASE("the pipeline of GPT 39B on 64 V100 is at least as good as Alpa's sixteen stages of 4") {
    check_not_worse({"p3:64", 8192, 48, 64, 16, 4, 16});
  }
}

ModelSpec small_stack() {
  return gpt(1024, 8, 16);
}

/// Returns the simulated step of as many equal stages as there are clusters to share.
Seconds uniform_step(PipelinePlanner& planner, const std::vector<PipelineSite>& sites,
                     const PipelineQuestion& question) {
  std::vector<PipelinePlanner::NamedStage> stages;
  int devices = 0;
  for (const PipelineSite& site : sites) devices += site.pricing->cluster().devices;
  for (int i = 0, site = 0, left = sites[0].pricing->cluster().devices; i < devices; ++i) {
    if (left == 0) left = sites[++site].pricing->cluster().devices;
    --left;
    stages.push_back({.begin = i * planner.clusters() / devices,
                      .end = (i + 1) * planner.clusters() / devices,
                      .site = site,
                      .devices = 1});
  }
  const auto pipeline = planner.of_stages(stages);
  REQUIRE(pipeline.has_value());
  return simulated_step(sites, *pipeline, question);
}

/// Checks that both sites together are simulated to be quicker than each alone, and than a stage of as many layers on
/// every device.
void check_both_are_better(const std::string& one, const std::string& other, const LinkCost& between) {
  const ModelSpec model = small_stack();
  const TrainingSpec training{.global_batch = 64, .sequence = 1, .precision = Precision::kBf16};
  Pricing first(model, preset_cluster(one), training), second(model, preset_cluster(other), training);
  const PipelineQuestion question{.samples = 4, .microbatches = 16, .clusters = 8, .between = between};
  const std::vector<PipelineSite> both = {{&first}, {&second}};
  PipelinePlanner planner(both, question);
  const auto ours = planner.fastest();
  REQUIRE(ours.has_value());
  const Seconds step = simulated_step(both, *ours, question);
  CHECK(step < uniform_step(planner, both, question));
  for (const std::vector<PipelineSite>& alone : {std::vector<PipelineSite>{{&first}}, {{&second}}}) {
    PipelinePlanner lonely(alone, question);
    const auto pipeline = lonely.fastest();
    REQUIRE(pipeline.has_value());
    CHECK(step < simulated_step(alone, *pipeline, question));
  }
}

TEST_CASE("H100 and A100 together are quicker than either alone and than equal stages") {
  check_both_are_better("h100:4", "a100:4", {.latency = Seconds{10e-6}, .bytes_per_second = 50e9});
}

TEST_CASE("two sites with 10 GB/s between them are quicker than either alone and than equal stages") {
  check_both_are_better("h100:4", "h100:4", {.latency = Seconds{1e-3}, .bytes_per_second = 10e9});
}

TEST_CASE("a device that holds not one layer leaves no pipeline") {
  ClusterSpec small = round_cluster(4);
  small.device.memory_bytes = 1 << 20;
  Pricing pricing(small_stack(), small, {.global_batch = 16, .sequence = 1});
  PipelinePlanner planner({{&pricing}}, {.samples = 1, .microbatches = 4, .clusters = 4});
  CHECK(!planner.fastest().has_value());
  check_refused<SpecError>([&] { planner.of_stages({{.begin = 2, .end = 9}}); }, "stage 0",
                           "no part of the 4 clusters");
}

}}  // namespace plumb::test
