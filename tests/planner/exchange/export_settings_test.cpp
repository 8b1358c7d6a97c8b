#include "planner/exchange/export_settings.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/planner/exchange/exchange_fixtures.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const TrainingSpec kTraining{.global_batch = 64, .sequence = 4096};

Exported exported(const std::string& target, const Layout& layout, const std::string& model = "llama-3-8b") {
  return export_settings(target_named(target), facts_of(preset_model(model), kTraining, layout));
}

nlohmann::json value_at(const Exported& exported, const std::string& key) {
  const auto found = std::ranges::find(exported.settings, key, [](const auto& setting) { return setting.first; });
  return found == exported.settings.end() ? nlohmann::json() : found->second;
}

/// True if a sentence about the target names the fact.
bool refuses(const std::string& target, const Layout& layout, const std::string& fact,
             const std::string& model = "llama-3-8b") {
  const Exported out = exported(target, layout, model);
  return std::ranges::any_of(out.refused, [&](const std::string& sentence) {
    return sentence.starts_with(target + " cannot express") && sentence.find(fact) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("uneven stages of Megatron are a layout string, and even ones a number of virtual stages") {
  const Layout even{
      .data = 2, .pipeline = 4, .chunks = 2, .schedule = "interleaved", .split = {4, 4, 4, 4, 4, 4, 4, 4}};
  CHECK(value_at(exported("megatron", even), "--num-virtual-stages-per-pipeline-rank") == 2);
  CHECK(value_at(exported("megatron", even), "--pipeline-model-parallel-layout").is_null());
  const Layout uneven{.data = 2, .pipeline = 4, .split = {7, 9, 9, 7}};
  CHECK(value_at(exported("megatron", uneven), "--pipeline-model-parallel-layout") == "Et*7|(ttttttttt|)*2t*7L");
  CHECK(value_at(exported("megatron", uneven), "--num-virtual-stages-per-pipeline-rank").is_null());
}

TEST_CASE("a stage of ZeRO over groups is the two degrees of torchtitan") {
  const Layout layout{.data = 8, .context = 2, .zero = 3, .shard = 8};
  const Exported out = exported("torchtitan", layout);
  CHECK(out.refused.empty());
  CHECK(value_at(out, "parallelism.data_parallel_shard_degree") == 4);
  CHECK(value_at(out, "parallelism.data_parallel_replicate_degree") == 2);
  CHECK(value_at(out, "parallelism.fsdp_reshard_after_forward") == "always");
}

TEST_CASE("a pipeline of torchtitan is handed the batch of a replica, and its micro-batch apart") {
  const Layout layout{.data = 2, .pipeline = 4, .zero = 2, .microbatch = 2, .split = {8, 8, 8, 8}};
  CHECK(value_at(exported("torchtitan", layout), "training.local_batch_size") == 32);
  CHECK(value_at(exported("torchtitan", layout), "parallelism.pipeline_parallel_microbatch_size") == 2);
  CHECK(value_at(exported("torchtitan", {.data = 8, .zero = 2, .microbatch = 2}), "training.local_batch_size") == 2);
}

TEST_CASE("each target refuses by name what it cannot express") {
  const Layout wide{.data = 4, .bucket_mib = 40};
  for (const char* target : {"megatron", "megatron-bridge", "deepspeed", "torchtitan", "nanotron", "fsdp2"}) {
    CAPTURE(target);
    CHECK(refuses(target, wide, "bucket_mib=40"));
  }
  CHECK(refuses("megatron", {.data = 4, .zero = 2}, "zero=2"));
  CHECK(refuses("megatron", {.data = 4, .pipeline = 2, .schedule = "zb-h1", .split = {16, 16}}, "schedule=zb-h1"));
  CHECK(
      refuses("deepspeed", {.data = 2, .pipeline = 2, .zero = 2, .split = {16, 16}}, "pipelines go with ZeRO 0 and 1"));
  CHECK(refuses("deepspeed", {.data = 4, .recompute = Recompute::kFull}, "recompute=full"));
  CHECK(refuses("deepspeed", {.data = 2, .pipeline = 2, .split = {17, 15}}, "as many layers"));
  CHECK(refuses("torchtitan", {.data = 4, .zero = 1}, "torchtitan cannot express zero=1: FSDP divides"));
  CHECK(exported("torchtitan", {.data = 4, .zero = 1}).refused.size() == 1);
  CHECK(refuses("torchtitan", {.data = 4, .tensor = 2, .zero = 3}, "sp=false"));
  CHECK(refuses("nanotron", {.data = 4, .zero = 3}, "zero=3"));
  CHECK(refuses("nanotron", {.data = 4}, "model.experts", "mixtral-8x7b"));
  CHECK(refuses("fsdp2", {.data = 2, .pipeline = 2, .split = {16, 16}}, "pp=2"));
  CHECK(refuses("megatron", {.data = 4}, "model.window", "mistral-7b"));
}

TEST_CASE("norms of heads are Megatron's --qk-layernorm, also those of latent attention") {
  CHECK(value_at(exported("megatron", {.data = 8}, "qwen3-8b"), "--qk-layernorm") == true);
  CHECK(value_at(exported("megatron", {.data = 8}, "deepseek-v3"), "--qk-layernorm") == true);
  CHECK(value_at(exported("megatron", {.data = 8}, "llama-3-8b"), "--qk-layernorm").is_null());
  CHECK(refuses("nanotron", {.data = 8}, "query_key_norms", "qwen3-8b"));
}

TEST_CASE("a graph of layers is refused, and told where it goes") {
  CHECK(exported("megatron", {.data = 4}, "resnet-50").refused.front().find("torch-csv") != std::string::npos);
}

TEST_CASE("what settings leave to others is said") {
  const Exported out = exported("fsdp2", {.data = 8, .zero = 3, .microbatch = 2});
  CHECK(out.refused.empty());
  REQUIRE(out.notes.size() == 2);
  CHECK(
      out.notes.front() ==
      "the settings of fsdp2 do not hold global_batch=64, mbs=2, seq=4096, optimizer=adamw: give them to your script");
}

TEST_CASE("sizes that are whole are written as whole numbers, and no dropout is said") {
  CHECK(value_at(exported("megatron", {.data = 4}), "--rotary-base").dump() == "500000");
  CHECK(value_at(exported("megatron", {.data = 4}), "--hidden-dropout") == 0);
}
