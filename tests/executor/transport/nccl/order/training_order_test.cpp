// The calls of training on ranks with a device each against those of the cpu backend: every message, every collective,
// with its size, in its order.

#include "tests/executor/transport/nccl/order/training_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/executor/small_model.h"
#include "tests/executor/transport/nccl/order/exchange_lists.h"

namespace plumb::test {
namespace {

/// Four heads, so that tensor and context ranks can share them; every other block has experts.
std::vector<Layer> mixed_model(int blocks) {
  std::vector<Layer> layers = gpt_model(blocks);
  for (int block = 2; block <= blocks; block += 2) layers[static_cast<std::size_t>(block)] = shared_expert_block();
  for (Layer& layer : layers)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->heads = block->kv_heads = 4, block->head_size = 4;
  return layers;
}

}  // namespace

TEST_CASE("the calls of NCCL of every schedule are the messages of the cpu backend") {
  for (const CatalogueEntry& entry : catalogue()) {
    if (!entry.unpriced.empty()) continue;  // no backend exchanges them
    CAPTURE(std::string(entry.name));
    const ScheduleParameters shape{.ranks = 2,
                                   .microbatches = 4,
                                   .chunks = entry.takes_chunks ? 2 : entry.chunks,
                                   .slices = entry.takes_slices ? 2 : 1};
    // An asynchronous schedule cannot share a table between its ends.
    const bool is_asynchronous = entry.name.starts_with("pipedream");
    const std::vector<Layer> model = is_asynchronous ? llama_model(6) : mixed_model(6);
    CHECK(check_against_cpu(spec_over(model, std::string(entry.name), shape, {})) >= 4);
  }
}

TEST_CASE("tensor, sequence, context and expert groups exchange what the cpu backend's do") {
  for (const bool sequence_parallel : {false, true})
    for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses})
      for (const ProcessGrid& grid : {ProcessGrid{.tensor = 2}, ProcessGrid{.context = 2, .expert = 2},
                                      ProcessGrid{.tensor = 2, .context = 2}, ProcessGrid{.expert = 2, .data = 2}}) {
        CAPTURE(grid.tensor);
        CAPTURE(grid.context);
        RunSpec spec = spec_over(mixed_model(4), "zb-h1", {.ranks = 2, .microbatches = 2}, grid);
        spec.sequence_parallel = sequence_parallel;
        spec.context_attention = attention;
        check_against_cpu(spec);
      }
  for (const char* schedule : {"seq1f1b", "gpipe"}) {
    RunSpec spec = spec_over(llama_model(), schedule, {.ranks = 2, .microbatches = 2}, {.tensor = 2, .context = 2});
    if (std::string(schedule) == "seq1f1b")
      spec = spec_over(llama_model(), schedule, {.ranks = 2, .microbatches = 2, .slices = 2}, {.context = 2});
    check_against_cpu(spec);
  }
  RunSpec three = spec_over(mixtral_model(), "1f1b", {.ranks = 1, .microbatches = 1}, {.context = 4, .expert = 4});
  check_against_cpu(three);
}

TEST_CASE("replicas reduce and gather what the cpu backend's do, for every ZeRO stage") {
  for (const int zero : {0, 1, 2, 3})
    for (const ShardBy by : {ShardBy::kElement, ShardBy::kLayer})
      for (const bool layerwise : {false, true}) {
        CAPTURE(zero);
        CAPTURE(layerwise);
        RunSpec spec =
            spec_over(mixed_model(4), "1f1b", {.ranks = 2, .microbatches = 3}, {.expert = 2, .data = 2}, zero);
        spec.shard_by = by;
        spec.layerwise = layerwise;
        if (zero > 0) spec.clip_norm = 1;
        if (layerwise) spec.rebuild = zero == 3 ? Recompute::kFull : Recompute::kSelective;
        check_against_cpu(spec);
      }
  RunSpec half = spec_over(llama_model(), "interleaved", {.ranks = 2, .microbatches = 4, .chunks = 2}, {.data = 2}, 3);
  half.half = HalfFormat::kFp16;
  half.layerwise = true;
  half.rebuild = Recompute::kStage;
  check_against_cpu(half);
  LoweringOptions buckets{.data = {.enabled = true, .zero = 0, .sharding = {}, .buckets = {2, 2}}};
  RunSpec bucketed =
      spec_of_lowered(gpt_model(), lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 3}), buckets), 2);
  CHECK(check_against_cpu(bucketed) > 0);
  check_against_cpu(spec_over(gpt_model(), "chimera", {.ranks = 2, .microbatches = 4}, {.data = 2}));
}

TEST_CASE("meshes of different shape hand over the pieces of the cpu backend") {
  constexpr StageMesh tensor2{.tensor = 2}, data2{.data = 2}, both{.data = 2, .tensor = 2};
  for (const Resharding kind : {Resharding::kDirect, Resharding::kAllGather, Resharding::kBroadcast})
    for (const std::vector<StageMesh>& meshes : {std::vector{tensor2, data2}, {data2, both}}) {
      LoweringOptions options{.data = {.enabled = true}};
      RunSpec spec =
          spec_of_lowered(gpt_model(), lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), options), 1);
      spec.meshes = meshes;
      spec.microbatch = 4;
      spec.sequence = 8;
      spec.resharding = kind;
      check_against_cpu(spec);
    }
}

}  // namespace plumb::test
