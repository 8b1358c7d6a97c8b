#include "planner/score/row_fields.h"

#include <map>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace plumb::test {

TEST_CASE("precisions are found in free text, and NVFP4 is not fp8") {
  CHECK(precision_in("mixed fp16 (paper: \"mixed precision\")") == Precision::kFp16);
  CHECK(precision_in("amp_bf16") == Precision::kBf16);
  CHECK(precision_in("amp") == Precision::kBf16);
  CHECK(precision_in("float8 linear") == Precision::kFp8);
  CHECK(precision_in("MXFP8") == Precision::kFp8);
  CHECK(precision_in("NVFP4") == Precision::kNvfp4);
  CHECK(!precision_in("MXFP4"));
  CHECK(!precision_in(""));
}

TEST_CASE("a model is found without the sizes that people add or leave out, unless another could be meant") {
  std::map<std::string, nlohmann::json> models;
  for (const char* name : {"qwen3-30b-a3b", "qwen3-32b", "deepseek-v3", "gpt2", "gpt2-xl"}) {
    models[name] = {{"hidden", static_cast<int>(models.size()) + 1}};
  }
  const auto hidden = [&](const char* name) {
    const nlohmann::json model = model_fields({{"model", {{"name", name}}}}, {}, models);
    return model.value("hidden", 0);
  };
  CHECK(hidden("Qwen3 MoE 30B") == 1);
  CHECK(hidden("Qwen3-30B-A3B") == 1);
  CHECK(hidden("Qwen3 32B") == 2);
  CHECK(hidden("DeepSeek V3 671B") == 3);
  CHECK(hidden("DeepSeekV3") == 3);
  CHECK(hidden("GPT-2") == 4);
  CHECK(hidden("GPT-2 1.5B") == 0);
  CHECK(hidden("7B") == 0);
}

TEST_CASE("recomputation is found in free text") {
  CHECK(recompute_in("none (not stated; Megatron default)") == Recompute::kNone);
  CHECK(recompute_in("selective(attention core)") == Recompute::kSelective);
  CHECK(recompute_in("per-op SAC") == Recompute::kSelective);
  CHECK(recompute_in("Full") == Recompute::kFull);
  CHECK(!recompute_in("block"));
}

TEST_CASE("schedules are found by their names in print and in the catalogue") {
  CHECK(schedule_in("1F1B", 1) == "1f1b");
  CHECK(schedule_in("1F1B", 3) == "interleaved");
  CHECK(schedule_in("", 1) == "1f1b");
  CHECK(schedule_in("interleaved 1F1B (6 chunks)", 6) == "interleaved");
  CHECK(schedule_in("1F1B-I", 2) == "interleaved");
  CHECK(schedule_in("ZB-1p", 1) == "zb-h1");
  CHECK(schedule_in("ZB-2p + all-reduce sync before optimizer", 1) == "zb-h2");
  CHECK(schedule_in("GPipe", 1) == "gpipe");
  CHECK(schedule_in("DualPipe-V", 2) == "dualpipev");
  CHECK(schedule_in("LoopedBFS", 4) == "bfs");
  CHECK(schedule_in("by hand", 1).empty());
}

TEST_CASE("ZeRO stages are read from any of their spellings") {
  const auto stage = [](const char* row) { return zero_stage_in(nlohmann::json::parse(row)); };
  CHECK(stage(R"({"zero": 2})") == 2);
  CHECK(stage(R"({"zero_equiv": 3, "sharding": "FULL_SHARD"})") == 3);
  CHECK(stage(R"({"sharding": "FSDP2 8"})") == 3);
  CHECK(stage(R"({"zero": "FSDP: optimizer+gradient sharded, params not resharded after fwd"})") == 2);
  CHECK(stage(R"({"zero": "distributed optimizer"})") == 1);
  CHECK(stage(R"({"dist_optimizer": true})") == 1);
  CHECK(stage(R"({"fsdp": 64})") == 3);
  CHECK(stage(R"({"dist_optimizer": false})") == 0);
  CHECK_FALSE(stage(R"({"fsdp": 0})"));
  CHECK_FALSE(stage("{}"));
}

TEST_CASE("devices are found in free text, superchips being others") {
  CHECK(device_preset_in("DGX-H100") == "h100");
  CHECK(device_preset_in("a100_80gb") == "a100");
  CHECK(device_preset_in("B200-SXM 1 node x8") == "b200");
  CHECK(device_preset_in("DGX-GB200").empty());
  CHECK(device_preset_in("abacus").empty());
}

TEST_CASE("a node's NICs are found in free text, as so many of a rate, a device's or a node's") {
  const auto selene = network_in("A100-80GB SXM (Selene, NVSwitch, 8x200Gb HDR IB)", 8);
  REQUIRE(selene);
  CHECK(selene->nics == 8);
  CHECK(selene->node_bytes_per_second == 200e9);
  const auto each = network_in("H100-80GB SXM 700W, RoCE 400Gb/s per GPU", 8);
  REQUIRE(each);
  CHECK(each->nics == 8);
  CHECK(each->node_bytes_per_second == 400e9);
  const auto node = network_in("A100-80GB SXM, 8 per node (NVSwitch), 800 Gb/s InfiniBand per node", 8);
  REQUIRE(node);
  CHECK(node->nics == 0);
  CHECK(node->node_bytes_per_second == 100e9);
  CHECK(!network_in("A100-80GB SXM, 8 per node", 8));
  CHECK(!network_in("B200-SXM 1 node x8", 8));
}

TEST_CASE("numbers are whole, or they are none") {
  const auto row = nlohmann::json::parse(R"({"a": {"b": 4, "c": 4.0, "d": 4.5, "e": "4", "f": 1e300}})");
  CHECK(integer_at(row, "a.b") == 4);
  CHECK(integer_at(row, "a.c") == 4);
  for (const char* path : {"a.d", "a.e", "a.f", "a.g", "b"}) CHECK(!integer_at(row, path));
}

TEST_CASE("a gated model is taken for a Llama, another for a GPT, unless the row says otherwise") {
  const auto fields = [](const char* row) { return model_fields(nlohmann::json::parse(row), nullptr, {}); };
  const auto llama = fields(R"({"model": {"layers": 2, "hidden": 8, "seq": 16, "gated_mlp": true}})");
  CHECK(llama["norm"] == "rms");
  CHECK(llama["qkv_bias"] == false);
  CHECK(!llama.contains("positions"));
  const auto gpt = fields(R"({"model": {"layers": 2, "hidden": 8, "seq": 16, "gated_mlp": false, "tied": false}})");
  CHECK(gpt["norm"] == "layer");
  CHECK(gpt["linear_bias"] == true);
  CHECK(gpt["positions"] == 16);
  CHECK(gpt["ffn"] == 32);
  CHECK(gpt["tied_embeddings"] == false);
}

TEST_CASE("memory and NICs in a hardware's text") {
  CHECK(memory_gb_in("A100-80GB SXM (Selene, 8x200Gb HDR IB)") == 80);
  CHECK(memory_gb_in("nvidia_a100-sxm4-80gb") == std::nullopt);
  CHECK(memory_gb_in("RTX 4090 48 GB, 1x25Gb") == 48);
  CHECK(memory_gb_in("DGX H100, 900 GB/s NVLink") == std::nullopt);
  CHECK(network_in("A100, 4 * 100Gb RoCE", 8)->nics == 4);
}

TEST_CASE("sharding in the words of frameworks") {
  CHECK(zero_stage_in({{"zero", "ZeRO-3"}}) == 3);
  CHECK(zero_stage_in({{"zero", "stage 1"}}) == 1);
  CHECK(zero_stage_in({{"sharding", "HYBRID_SHARD"}}) == 3);
  CHECK(zero_stage_in({{"sharding", "SHARD_GRAD_OP"}}) == 2);
  CHECK(zero_stage_in({{"fsdp", true}}) == 3);
}

}  // namespace plumb::test
