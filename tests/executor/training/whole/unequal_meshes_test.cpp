// Pipeline ranks that are meshes of different shape, against one rank: gradients agree within 1e-5, losses within 1e-4
// (docs/design.md).

#include <doctest/doctest.h>

#include "executor/training/baseline.h"
#include "schedules/error.h"
#include "tests/executor/meshes.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

/// Returns the worst difference of the first step's gradients from those of one rank.
double off(const RunSpec& spec) {
  return worst_difference(gradients_of(spec), gradients_of(baseline_of(spec)));
}

}  // namespace

TEST_CASE("a stage of two tensor ranks feeds one of two replicas, and the reverse, however tensors are handed over") {
  for (const std::vector<Layer>& model : {llama_model(), gpt_model()})
    for (const std::vector<StageMesh>& meshes : {std::vector{kTensor2, kData2},
                                                 {kData2, kTensor2},
                                                 {kAlone, kDataTensor},
                                                 {kDataTensor, kAlone},
                                                 {kData4, kDataTensor}})
      for (const Resharding kind : {Resharding::kDirect, Resharding::kAllGather, Resharding::kBroadcast})
        for (const bool sequence_parallel : {false, true}) {
          RunSpec spec = over_meshes(model, "1f1b", meshes);
          spec.resharding = kind;
          spec.sequence_parallel = sequence_parallel;
          CHECK(off(spec) <= 1e-5);
        }
}

TEST_CASE("every schedule runs over meshes of different shape") {
  for (const char* name : {"gpipe", "zb-h1", "eager-1f1b", "bfs", "interleaved", "zb-v"}) {
    CAPTURE(name);
    const bool has_chunks = std::string(name) == "bfs" || std::string(name) == "interleaved";
    CHECK(off(over_meshes(gpt_model(), name, {kTensor2, kData2}, {.chunks = has_chunks ? 2 : 1})) <= 1e-5);
  }
  CHECK(off(over_meshes(gpt_model(), "seq1f1b", {kTensor2, kData2}, {.slices = 2})) <= 1e-5);
  CHECK(off(over_meshes(wide_llama(4), "1f1b", {kTensor4, kData4, kDataTensor})) <= 1e-5);
}

TEST_CASE("meshes of different shape combine with pipelines, context ranks, ZeRO and recomputation") {
  CHECK(off(over_meshes(gpt_model(), "1f1b", {kDataTensor, kData4}, {}, 2)) <= 1e-5);
  for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses}) {
    RunSpec spec = over_meshes(gpt_model(), "1f1b", {kTensor2, kData2});
    spec.grid.context = 2;
    spec.context_attention = attention;
    if (attention == ContextAttention::kUlysses) spec.meshes = {kAlone, kData2};
    CHECK(off(spec) <= 1e-5);
  }
  for (const int zero : {1, 2, 3})
    for (const ShardBy by : {ShardBy::kElement, ShardBy::kLayer}) {
      RunSpec spec = over_meshes(gpt_model(), "1f1b", {kTensor2, kData2}, {}, 1, zero);
      spec.shard_by = by;
      CHECK(off(spec) <= 1e-5);
      spec.layerwise = true;
      CHECK(off(spec) <= 1e-5);
    }
  RunSpec again = over_meshes(llama_model(), "1f1b", {kData2, kTensor2});
  again.rebuild = Recompute::kStage;
  CHECK(off(again) <= 1e-5);
}

TEST_CASE("twenty clipped steps over meshes of different shape have the losses of one rank") {
  RunSpec spec = over_meshes(gpt_model(), "1f1b", {kTensor2, kData2});
  spec.steps = 20;
  spec.clip_norm = 0.5;
  const std::vector<double> losses = run(spec).losses, expected = run(baseline_of(spec)).losses;
  for (std::size_t step = 0; step < losses.size(); ++step)
    CHECK(losses[step] == doctest::Approx(expected[step]).epsilon(1e-4));
}

TEST_CASE("a rank holds its mesh's share of its stage") {
  // Stage 0 is an embedding of 32 x 16 and two blocks over two tensor ranks. Stage 1 is a head and two blocks on each
  // replica. A Llama block has 16 (16 + 2 8) + 16 16 + 3 16 24 elements that are divided, and 32 of norms.
  const RunSpec spec = over_meshes(llama_model(), "1f1b", {kTensor2, kData2});
  const std::vector<ParameterBytes> held = run(spec).parameter_bytes;
  REQUIRE(held.size() == 4);
  constexpr std::int64_t block = 16 * 32 + 16 * 16 + 3 * 16 * 24, table = 32 * 16;
  CHECK(held[0].weights == 4 * ((table + 2 * block) / 2 + 2 * 32));
  CHECK(held[1].weights == held[0].weights);
  CHECK(held[2].weights == 4 * (table + 2 * block + 2 * 32 + 16));
  CHECK(held[3].weights == held[2].weights);
}

TEST_CASE("images are divided over the replicas of a mesh too") {
  RunSpec spec = over_meshes(cnn_model(), "1f1b", {kData2, kAlone});
  spec.sequence = 1;
  CHECK(off(spec) <= 1e-5);
}

TEST_CASE("meshes that cannot be are refused") {
  RunSpec spec = over_meshes(gpt_model(), "1f1b", {kTensor2, kData2});
  spec.meshes.pop_back();
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("meshes are given for 1 pipeline ranks"), SpecError);
  spec = over_meshes(gpt_model(), "1f1b", {kTensor2, StageMesh{.data = 3}});
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("cannot be divided over the 3 replicas"), SpecError);
  spec = over_meshes(gpt_model(), "1f1b", {kTensor2, StageMesh{.data = 3}}, {}, 2);
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("give a multiple"), SpecError);
  spec = over_meshes(gpt_model(), "1f1b", {kAlone, StageMesh{.tensor = 4}});  // 4 ranks share two heads
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("layer 3"), SpecError);
  spec = over_meshes(gpt_model(), "chimera", {kTensor2, kData2});
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("whose meshes have different shapes"), ScheduleError);
}

}  // namespace plumb::test
