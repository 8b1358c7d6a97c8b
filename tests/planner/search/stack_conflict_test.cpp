#include "planner/search/stack_conflict.h"

#include <doctest/doctest.h>

#include "planner/search/layout_tree.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

Pricing with_limits(const StackLimits& limits, ModelSpec model = small_gpt()) {
  TrainingSpec training{.global_batch = 24, .sequence = 256};
  training.stack = StackSpec{.name = "mine", .can = limits};
  return {model, round_cluster(8), training};
}

/// The sentences about a layout, joined.
std::string broken(const StackLimits& limits, const char* layout, const ModelSpec& model = small_gpt()) {
  std::string text;
  for (const Rejection& rule : stack_conflicts(with_limits(limits, model), layout_of(parse_layout(layout))))
    text += rule.reason + "; ";
  return text;
}

}  // namespace

TEST_CASE("a conflict names the rule of the stack and the remedy") {
  CHECK(broken({}, "dp=2,tp=2,pp=2,zero=3,sp=1").empty());
  CHECK(broken({.tensor = false}, "tp=2,dp=4") == "stack mine divides no tensors: give tp=1; ");
  CHECK(broken({.pipeline = false}, "pp=2,dp=4") == "stack mine has no pipelines: give pp=1; ");
  CHECK(broken({.context = false}, "cp=2,dp=4") == "stack mine divides no sequences: give cp=1; ");
  CHECK(broken({.sequence_parallel = false}, "tp=2,sp=1,dp=4") ==
        "stack mine has no sequence parallelism: give sp=0; ");
  CHECK(broken({.zero = {0, 1}}, "dp=8,zero=3") == "stack mine has no ZeRO 3: give zero=0 or 1; ");
  CHECK(broken({.zero = {2, 3}}, "tp=8").empty());  // a replica alone shares nothing
  CHECK(broken({.zero_in_pipelines = {0, 1}}, "dp=4,pp=2,zero=2") ==
        "stack mine has no ZeRO 2 in pipelines: give zero=0 or 1 or pp=1; ");
  CHECK(broken({.recompute = {Recompute::kNone, Recompute::kFull}}, "dp=8,recompute=selective") ==
        "stack mine has no recomputation of that kind: give recompute=none or full; ");
  CHECK(broken({.schedules = {"1f1b", "interleaved"}}, "pp=2,dp=4,schedule=gpipe") ==
        "stack mine runs no schedule gpipe: give schedule=1f1b or interleaved; ");
  CHECK(broken({.schedules = {"interleaved"}}, "dp=8").empty());  // one rank has no schedule
  CHECK(broken({.equal_stages = true}, "pp=2,v=3,dp=4,schedule=interleaved").find("8 layers do not divide into 6") !=
        std::string::npos);
  CHECK(broken({.whole_rounds = true}, "pp=8,v=1").empty());
  CHECK(broken({.whole_rounds = true}, "pp=4,v=2,dp=2,mbs=2,schedule=interleaved").find("rounds of as many as pp=4") !=
        std::string::npos);  // 6 micro-batches
  CHECK(broken({}, "cp=2,dp=4,cp_kind=ulysses") ==
        "stack mine divides no sequence that way: leave cp_kind=ulysses out, for ring; ");
  CHECK(broken({.context_kinds = {ContextKind::kUlysses}}, "cp=2,dp=4,cp_kind=ulysses").empty());
  CHECK(
      broken({.context_kinds = {ContextKind::kUlysses}}, "tp=4,cp=4,cp_kind=ulysses,dp=1").find("does not divide 8") !=
      std::string::npos);  // heads
  CHECK(broken({.shard_groups = false}, "dp=8,zero=1,shard=2") ==
        "stack mine divides the state of ZeRO over all replicas: leave shard out; ");
  CHECK(broken({.shard_groups = true}, "dp=8,zero=1,shard=2").empty());
  CHECK(broken({.offload = {}}, "dp=8,zero=1,offload=optimizer") ==
        "stack mine keeps what offload=optimizer moves to the hosts on the devices: leave it out; ");
  CHECK(broken({.offload = {{.optimizer = true}}}, "dp=8,offload=optimizer").empty());
  CHECK(broken({.offload = {{.optimizer = true}}}, "dp=8,offload=optimizer+activations").find("leave it out") !=
        std::string::npos);
  CHECK(broken({.offload_needs_zero = true}, "dp=8,offload=optimizer").find("give zero=1") != std::string::npos);
  CHECK(broken({.offload_needs_zero = true}, "dp=8,zero=1,offload=optimizer").empty());
  CHECK(broken({.replicas_apart = false}, "dp=4,pp=2,order=tp-cp-pp-dp") ==
        "stack mine places the replicas of a stage side by side: leave order out; ");
  CHECK(broken({.replicas_apart = true}, "dp=4,pp=2,order=tp-cp-pp-dp").empty());
  CHECK(broken({.named_splits = false}, "pp=2,dp=4,split=5:3") ==
        "stack mine cuts layers by a rule of its own: leave the split out; ");
  CHECK(broken({.named_splits = false}, "pp=2,dp=4,split=4:4").empty());  // that is its rule
  ModelSpec experts = small_gpt();
  experts.experts = 4;
  experts.experts_per_token = 1;
  experts.expert_ffn = 4096;
  CHECK(broken({.experts = false}, "dp=8,ep=2", experts) == "stack mine spreads no experts: give ep=1; ");
  CHECK(broken({.experts_need_sequence_parallel = true}, "tp=2,dp=4", experts).find("give sp=1") != std::string::npos);
  CHECK(broken({.experts_need_sequence_parallel = true}, "tp=2,dp=4,sp=1", experts).empty());
  const char* some_layers = "dp=8,recompute=full,recompute_layers=2";
  CHECK(broken({}, some_layers).find("leave recompute_layers out") != std::string::npos);
  CHECK(broken({.recompute_layers = true}, some_layers).empty());
}

TEST_CASE("a search leaves out what the framework does not run, unless the keys are asked for by name") {
  Pricing pricing = with_limits({.zero = {0, 1}, .tensor_across_nodes = false});
  for (const Layout& layout : enumerate_layouts(pricing, {}).layouts) {
    CHECK(layout.zero <= 1);
    CHECK(layout.tensor <= 4);  // devices of a node
  }
  const auto offered = [&](const char* request) { return enumerate_layouts(pricing, parse_layout(request)).layouts; };
  CHECK(!offered("zero=3").empty());
  CHECK(!offered("tp=8").empty());
  CHECK(stack_conflicts(pricing, {.tensor = 8}).empty());  // a habit, and no rule
  const Enumeration open = enumerate_layouts(pricing, parse_layout("dp=8"));
  CHECK(std::ranges::any_of(open.conflicts, [](const Rejection& conflict) {
    return conflict.reason == "stack mine has no ZeRO 2: give zero=0 or 1" && conflict.layout.zero == 2;
  }));
  TrainingSpec own{.global_batch = 24, .sequence = 256};
  const Pricing unlimited(small_gpt(), round_cluster(8), own);
  CHECK(stack_conflicts(unlimited, {.data = 8, .zero = 3}).empty());
}

TEST_CASE("the frameworks of the presets are not offered what they do not run") {
  const auto offered = [](const char* stack, const char* model, const char* cluster, const char* request) {
    TrainingSpec training{.global_batch = 512, .sequence = 2048};
    training.stack = parse_stack(source_text(std::string("tools/specs/stacks/") + stack + ".json"), stack);
    Pricing pricing(preset_model(model), preset_cluster(cluster), training);
    return enumerate_layouts(pricing, parse_layout(request)).layouts;
  };
  for (const Layout& layout : offered("megatron-lm-2021", "megatron-1t", "a100:512", "mbs=1")) {
    CHECK(layout.zero == 0);
    CHECK(layout.tensor <= 8);
    CHECK(128 % (layout.pipeline * layout.chunks) == 0);
  }
  for (const Layout& layout : offered("megatron-deepspeed", "gpt3-175b", "a100:64", "mbs=1"))
    CHECK((layout.zero <= 1 || layout.pipeline == 1));
  for (const Layout& layout : offered("fsdp", "llama-2-7b", "a100:64", "mbs=1"))
    CHECK(layout.tensor * layout.pipeline == 1);
}

}  // namespace plumb::test
