#include "planner/exchange/facts/derived_facts.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("replicas follow from the devices, and the batch from the micro-batches") {
  Facts facts{{"devices", 64}, {"tp", 4}, {"pp", 2}, {"cp", 2}, {"mbs", 2}, {"microbatches", 8}};
  solve(facts, "run");
  CHECK(facts["dp"] == 4);             // 64 / (4 x 2 x 2)
  CHECK(facts["global_batch"] == 64);  // 8 micro-batches x 4 replicas x 2 sequences
}

TEST_CASE("replicas follow from the batch and its micro-batches") {
  Facts facts{{"global_batch", 64}, {"mbs", 2}, {"microbatches", 8}};
  solve(facts, "run");
  CHECK(facts["dp"] == 4);
}

TEST_CASE("devices that the degrees do not divide are refused with the place") {
  Facts facts{{"devices", 60}, {"tp", 8}, {"pp", 1}, {"cp", 1}};
  check_refused<SpecError>([&] { solve(facts, "run.sh"); }, "run.sh", "60 is no multiple of 8");
}

TEST_CASE("the degrees of FSDP and the moment of dropping parameters are a stage of ZeRO and its groups") {
  Facts zero3{{"fsdp_copies", 2}, {"fsdp_shards", 4}, {"fsdp_reshard", "always"}, {"cp", 2}, {"pp", 1}};
  solve(zero3, "job");
  CHECK(zero3["zero"] == 3);
  CHECK(zero3["dp"] == 8);
  CHECK(zero3["shard"] == 8);  // 4 replicas x 2 ranks of a sequence
  // "default" never drops the parameters of pipelines.
  Facts pipelined{{"fsdp_copies", 1}, {"fsdp_shards", 4}, {"fsdp_reshard", "none"}, {"cp", 1}, {"pp", 2}};
  solve(pipelined, "job");
  CHECK(pipelined["zero"] == 2);
  CHECK(pipelined["shard"] == 0);
  // Without a shard degree all replicas are copies: data parallelism.
  Facts copies{{"fsdp_copies", 8}, {"fsdp_shards", 1}, {"fsdp_reshard", "none"}, {"cp", 1}, {"pp", 1}};
  solve(copies, "job");
  CHECK(copies["zero"] == 0);
  CHECK(copies["dp"] == 8);
}

TEST_CASE("a run that FSDP does not do has no degrees of it") {
  Facts facts{{"zero", 1}, {"dp", 8}, {"cp", 1}, {"shard", 0}};
  add_derived(facts);
  CHECK(fact_at(facts, "fsdp_shards").is_null());
  CHECK(!remedy_of("fsdp_shards").empty());
}

TEST_CASE("ends that count as a layer make Megatron's stages uneven") {
  Facts both{{"model.layers", 126}, {"pp", 16}, {"v", 1}, {"counts_embedding", true}, {"counts_loss", true}};
  solve(both, "run");
  CHECK(both["split"].front() == 7);
  CHECK(both["split"][1] == 8);
  CHECK(both["split"].back() == 7);
  Facts loss{{"model.layers", 7}, {"pp", 4}, {"v", 1}, {"counts_embedding", false}, {"counts_loss", true}};
  solve(loss, "run");
  CHECK(loss["split"] == nlohmann::json({2, 2, 2, 1}));
}

TEST_CASE("layers of a virtual stage tell the stages of a rank") {
  Facts facts{{"model.layers", 48}, {"pp", 4}, {"layers_per_chunk", 3}};
  solve(facts, "run");
  CHECK(facts["v"] == 4);
}

TEST_CASE("Megatron's gradients are fp32 unless a flag or fp16 says otherwise") {
  const auto gradients = [](const char* precision, bool wide, bool narrow) {
    Facts facts{{"precision", precision}, {"fp32_gradients", wide}, {"bf16_gradients", narrow}};
    solve(facts, "run");
    return facts["gradient_precision"];
  };
  CHECK(gradients("bf16", false, false) == "fp32");
  CHECK(gradients("bf16", false, true) == "bf16");
  CHECK(gradients("fp16", false, false) == "fp16");
  CHECK(gradients("fp16", true, false) == "fp32");
}

TEST_CASE("settings that contradict each other are refused by the fact") {
  Facts facts{{"devices", 16}, {"dp", 4}, {"tp", 2}, {"pp", 1}, {"cp", 1}};
  check_refused<SpecError>([&] { solve(facts, "run.sh"); }, "run.sh", "dp is 4 by one setting and 8 by another");
}

TEST_CASE("a pattern of experts is read where dense layers come first or experts in periods, and refused otherwise") {
  Facts facts{{"model.layers", 61}, {"model.experts", 256}, {"expert_pattern", "([0]*3+[1]*58)"}};
  solve(facts, "run");
  CHECK(facts["model.dense_layers"] == 3);
  Facts interleaved{{"model.layers", 48}, {"model.experts", 128}, {"expert_pattern", "([0]*1+[1]*1)*24"}};
  solve(interleaved, "run");
  CHECK(interleaved["model.experts_every"] == 2);
  CHECK(interleaved["model.dense_layers"] == 0);
  Facts mixed{{"model.layers", 4}, {"model.experts", 8}, {"expert_pattern", "([1]*1+[0]*1)*2"}};
  check_refused<SpecError>([&] { solve(mixed, "run.sh"); }, "run.sh", "other patterns are not modelled");
}
