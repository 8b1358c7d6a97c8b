// The calls of ranks with a device each against those of the cpu backend, call by call on each communicator.

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "executor/groups/message_pairs.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"
#include "tests/executor/transport/nccl/order/exchange_lists.h"

namespace plumb::test {
namespace {

std::vector<Layer> ordered_model(bool is_tied, bool is_half) {
  if (is_half) return is_tied ? tied_llama_model() : llama_model();
  return is_tied ? gpt_model() : untied_gpt_model();
}

/// Returns the block with twice as many heads of half the size.
TransformerLayer four_heads(TransformerLayer block) {
  block.heads *= 2;
  block.kv_heads *= 2;
  block.head_size /= 2;
  return block;
}

RunSpec laid_out(const std::vector<Layer>& model, const std::string& name, int replicas, int tensor, int zero) {
  RunSpec spec = spec_of_lowered(
      model,
      lower(make_schedule(name, {.ranks = 2, .microbatches = 4}), {.data = {.enabled = replicas > 1, .zero = zero}}),
      replicas);
  spec.grid.tensor = tensor;
  spec.zero = zero;
  spec.steps = 1;
  return spec;
}

}  // namespace

TEST_CASE("a rank with a device of its own exchanges what a rank of the cpu backend does, call by call") {
  std::int64_t calls = 0;
  for (const bool is_tied : {false, true})
    for (const auto& [name, replicas, tensor, zero] :
         std::vector<std::tuple<std::string, int, int, int>>{{"1f1b", 2, 1, 0},
                                                             {"interleaved", 1, 2, 0},
                                                             {"zb-h1", 2, 2, 1},
                                                             {"zb-v", 3, 1, 2},
                                                             {"gpipe", 2, 1, 3},
                                                             {"1f1b", 2, 2, 3}})
      for (const bool is_half : {false, true}) {
        CAPTURE(name);
        CAPTURE(zero);
        RunSpec spec = laid_out(ordered_model(is_tied, is_half), name, replicas, tensor, zero);
        if (is_half) spec.half = is_tied ? HalfFormat::kFp16 : HalfFormat::kBf16;
        if (is_tied && replicas > 1) spec.clip_norm = 1;
        calls += check_against_cpu(spec);
      }
  CHECK(calls > 1000);
}

TEST_CASE("messages that go both ways at once are one group where an action hides it") {
  for (const std::string name : {"v-1f1b", "dualpipe", "dualpipev", "stp", "v-half", "1f1b"})
    for (const int replicas : {1, 2})
      for (const Receives receives : {Receives::kEarly, Receives::kLate}) {
        CAPTURE(name);
        const Schedule order = make_schedule(name, {.ranks = 4, .microbatches = 8});
        const RunSpec spec = spec_of_lowered(
            llama_model(6), lower(order, {.data = {.enabled = replicas > 1}, .receives = receives}), replicas);
        CHECK(check_against_cpu(spec) > 90 * replicas);
        const TrainingPlan plan = plan_training(spec);
        const bool has_pairs = !message_pairs(plan.replay.schedule, plan.replay.grid).empty();
        if (receives == Receives::kEarly) CHECK(has_pairs == (name != "1f1b" && name != "stp"));
      }
}

TEST_CASE("slices of sequences send and receive their own bytes, of 2 and of 3 tokens") {
  std::int64_t calls = 0;
  for (const bool is_half : {false, true})
    for (const std::string name : {"seq1f1b", "terapipe"})
      for (const auto& [replicas, tensor, zero] : {std::tuple{1, 1, 0}, std::tuple{2, 2, 1}, std::tuple{2, 1, 3}}) {
        CAPTURE(name);
        CAPTURE(zero);
        const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4, .slices = 3});
        RunSpec spec =
            spec_of_lowered(llama_model(), lower(order, {.data = {.enabled = replicas > 1, .zero = zero}}), replicas);
        spec.grid.tensor = tensor;
        spec.zero = zero;
        spec.layerwise = zero == 3;
        spec.sequence = 8;
        spec.steps = 1;
        if (is_half) spec.half = HalfFormat::kBf16;
        calls += check_against_cpu(spec);
      }
  CHECK(calls > 1000);
}

TEST_CASE("context ranks exchange blocks of a slice and of those before, or the slice's heads, as on the CPU") {
  std::int64_t calls = 0;
  for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses}) {
    CAPTURE(static_cast<int>(attention));
    const Schedule order = make_schedule("seq1f1b", {.ranks = 2, .microbatches = 4, .slices = 2});
    RunSpec spec = spec_of_lowered(llama_model(), lower(order, {.data = {.enabled = true}}), 1);
    spec.grid.context = 2;
    spec.context_attention = attention;
    spec.sequence = 8;
    spec.microbatch = 2;
    spec.steps = 1;
    calls += check_against_cpu(spec);
  }
  CHECK(calls > 400);
}

TEST_CASE("copies of a stage in one schedule exchange layer by layer what they do on the CPU") {
  std::int64_t calls = 0;
  for (const std::string name : {"chimera", "dualpipe"})
    for (const int zero : {2, 3})
      for (const int replicas : {1, 2}) {
        CAPTURE(name);
        CAPTURE(zero);
        RunSpec spec = laid_out(untied_gpt_model(), name, replicas, 1, zero);
        const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4});
        spec.schedule = lower(order, {.data = {.enabled = true, .zero = zero}});
        spec.layerwise = true;
        calls += check_against_cpu(spec);
      }
  CHECK(calls > 500);
}

TEST_CASE("between meshes of different shape too: pieces of messages, what completes them, and tied tables") {
  for (const Resharding kind : {Resharding::kDirect, Resharding::kAllGather, Resharding::kBroadcast})
    for (const bool is_tied : {false, true}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(is_tied);
      RunSpec spec = laid_out(ordered_model(is_tied, false), is_tied ? "1f1b" : "zb-h1", 1, 1, 1);
      spec.schedule =
          lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = 1}});
      spec.meshes = is_tied ? std::vector<StageMesh>{{.data = 1, .tensor = 2}, {.data = 2, .tensor = 1}}
                            : std::vector<StageMesh>{{.data = 1, .tensor = 1}, {.data = 2, .tensor = 2}};
      spec.resharding = kind;
      spec.microbatch = 4;
      CHECK(check_against_cpu(spec) > 40);
    }
}

TEST_CASE("copies of a stage in one schedule too, of which several ranks of a pipeline exchange") {
  for (const std::string name : {"chimera", "dualpipe"})
    for (const int zero : {0, 1, 2, 3})
      for (const bool is_tied : {false, true}) {
        CAPTURE(name);
        CAPTURE(zero);
        RunSpec spec = laid_out(ordered_model(is_tied, false), name, 1, 1, zero);
        spec.schedule =
            lower(make_schedule(name, {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = zero}});
        if (is_tied) spec.clip_norm = 1;
        CHECK(check_against_cpu(spec) > 15);
      }
}

TEST_CASE("layer by layer too: weights of the next layer ahead, gradients behind the layer's own") {
  for (const int zero : {2, 3})
    for (const auto& [name, rebuild] :
         std::vector<std::pair<std::string, Recompute>>{{"1f1b", Recompute::kNone},
                                                        {"zb-h1", Recompute::kNone},
                                                        {"interleaved", Recompute::kStage},
                                                        {"1f1b", Recompute::kFull},
                                                        {"gpipe", Recompute::kSelective}})
      for (const bool is_half : {false, true}) {
        CAPTURE(name);
        CAPTURE(zero);
        RunSpec spec = laid_out(ordered_model(is_half, is_half), name, 2, name == "gpipe" ? 2 : 1, zero);
        spec.layerwise = true;
        spec.rebuild = rebuild;
        spec.rebuild_which = RebuildWhich::kAll;
        if (is_half) spec.half = HalfFormat::kBf16;
        if (zero == 2) spec.shard_by = ShardBy::kLayer;
        CHECK(check_against_cpu(spec) > 80);
      }
}

TEST_CASE("with sequence parallelism too, and where tensor ranks have the same kv heads") {
  std::vector<Layer> one_kv_head = llama_model();
  for (Layer& layer : one_kv_head)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->kv_heads = 1;
  for (const bool divides_rows : {false, true})
    for (const std::vector<Layer>& model : {untied_gpt_model(), one_kv_head})
      for (const auto& [name, replicas, zero] :
           std::vector<std::tuple<std::string, int, int>>{{"1f1b", 1, 0}, {"zb-h1", 2, 3}, {"interleaved", 2, 1}}) {
        CAPTURE(name);
        CAPTURE(divides_rows);
        RunSpec spec = laid_out(model, name, replicas, 2, zero);
        spec.sequence_parallel = divides_rows;
        CHECK(check_against_cpu(spec) > 100);
      }
}

TEST_CASE("the all-to-alls and the rings of context groups too") {
  for (const ContextAttention attention : {ContextAttention::kUlysses, ContextAttention::kRing})
    for (const auto& [name, replicas, tensor, context, zero] : std::vector<std::tuple<std::string, int, int, int, int>>{
             {"1f1b", 1, 1, 2, 0}, {"zb-h1", 2, 1, 2, 3}, {"interleaved", 1, 2, 2, 1}, {"gpipe", 1, 1, 4, 2}}) {
      CAPTURE(name);
      CAPTURE(static_cast<int>(attention));
      std::vector<Layer> model = ordered_model(true, false);
      for (Layer& layer : model)
        if (auto* block = std::get_if<TransformerLayer>(&layer)) *block = four_heads(*block);
      RunSpec spec = laid_out(model, name, replicas * context, tensor, zero);
      spec.grid.data = replicas;
      spec.grid.context = context;
      spec.context_attention = attention;
      spec.sequence_parallel = tensor > 1;
      spec.sequence = 16;
      CHECK(check_against_cpu(spec) > 100);
    }
}

TEST_CASE("and a router's picks, with rows divided and whole") {
  for (const bool divides_rows : {false, true})
    for (const std::vector<Layer>& model : {mixtral_model(), shared_expert_model()}) {
      CAPTURE(divides_rows);
      RunSpec spec = laid_out(model, "zb-h1", 2, divides_rows ? 2 : 1, 0);
      spec.grid.data = 1;
      spec.grid.context = 2;
      spec.sequence_parallel = divides_rows;
      spec.sequence = 16;
      CHECK(check_against_cpu(spec) > 100);
    }
}

TEST_CASE("gradients and weights of experts are exchanged by themselves") {
  for (const bool layerwise : {false, true})
    for (const int zero : {0, 1, 2, 3}) {
      CAPTURE(zero);
      CAPTURE(layerwise);
      RunSpec spec = laid_out(zero % 2 == 0 ? mixtral_model() : shared_expert_model(), "1f1b", 2, 1, zero);
      spec.layerwise = layerwise && zero >= 2;
      spec.sequence = 8;
      CHECK(check_against_cpu(spec) > 30);
    }
}

TEST_CASE("pairs of one stage exchange by turns, and one pass behind the other where it goes layer by layer") {
  for (const auto& [tensor, zero, layerwise] :
       {std::tuple{2, 0, false}, std::tuple{2, 3, false}, std::tuple{2, 2, true}, std::tuple{1, 3, true}}) {
    CAPTURE(zero);
    CAPTURE(layerwise);
    RunSpec spec = laid_out(ordered_model(false, false), "stp", 2, tensor, zero);
    spec.layerwise = layerwise;
    CHECK(check_against_cpu(spec) > 100);
  }
}

TEST_CASE("the all-to-alls of expert groups too, in blocks whose size no pick decides") {
  for (const std::vector<Layer>& model : {mixtral_model(), shared_expert_model()})
    for (const ProcessGrid& grid :
         {ProcessGrid{.expert = 2, .data = 2}, ProcessGrid{.tensor = 2, .expert = 2, .data = 4},
          ProcessGrid{.context = 2, .expert = 4, .data = 2}})
      for (const int zero : {0, 3}) {
        CAPTURE(grid.expert);
        CAPTURE(zero);
        RunSpec spec = laid_out(model, zero == 0 ? "zb-h1" : "1f1b", grid.data * grid.context, grid.tensor, zero);
        spec.grid.data = grid.data;
        spec.grid.context = grid.context;
        spec.grid.expert = grid.expert;
        spec.layerwise = zero == 3;
        spec.sequence_parallel = grid.tensor > 1;
        spec.sequence = 16;
        CHECK(check_against_cpu(spec) > 100);
        const Schedule order = make_schedule("seq1f1b", {.ranks = 2, .microbatches = 4, .slices = 2});
        spec.schedule = lower(order, {.data = {.enabled = true, .zero = zero}});
        CHECK(check_against_cpu(spec) > 100);
      }
}

}  // namespace plumb::test
