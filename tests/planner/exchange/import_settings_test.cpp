#include "planner/exchange/import_settings.h"

#include <doctest/doctest.h>

#include "planner/exchange/forms/settings_text.h"
#include "schedules/error.h"
#include "tests/planner/exchange/exchange_fixtures.h"
#include "tests/planner/refusal.h"

using namespace plumb;
using namespace plumb::test;

namespace {

Imported read_by(const std::string& name, const std::string& text, Facts known = {}) {
  const Target target = target_named(name);
  return import_settings(target, read_settings(target.form, text, "file"), std::move(known), "file");
}

}  // namespace

TEST_CASE("a user's command of Megatron-LM gives its layout, its model and its stack") {
  // The arguments that NVIDIA's examples of GPT-3 175B use, with a virtual pipeline by its layers.
  const Imported in = read_by("megatron", R"(
    GPT_ARGS=(--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048
      --max-position-embeddings 2048 --vocab-size 51200 --attention-dropout 0 --hidden-dropout 0 --ffn-hidden-size 49152)
    torchrun --nproc_per_node 8 --nnodes=16 pretrain_gpt.py ${GPT_ARGS[@]} \
      --tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 6 \
      --micro-batch-size 1 --global-batch-size 1536 --use-distributed-optimizer --recompute-granularity selective --fp16 \
      --sequence-parallel --lr 6.0e-5)");
  const Layout layout = layout_of(in.run.layout);
  CHECK(to_text(layout) == "dp=2,tp=8,pp=8,v=2,zero=1,sp=1,mbs=1,recompute=selective,schedule=interleaved");
  CHECK(in.run.precision == Precision::kFp16);
  CHECK(in.run.gradient_precision == Precision::kFp16);
  REQUIRE(in.run.model);
  CHECK(in.run.model->positions == 2048);
  CHECK(in.run.model->qkv_bias);
  CHECK(in.stack == "megatron-core");
  CHECK(in.ignored == std::vector<std::string>{"--lr"});
}

TEST_CASE("a part of each head that RoPE turns is known also where the size of a head is Megatron's default") {
  const Imported in = read_by("megatron",
                              "--num-layers 4 --hidden-size 1024 --num-attention-heads 8 --ffn-hidden-size 4096 "
                              "--vocab-size 512 --position-embedding-type rope --rotary-percent 0.25 --swiglu");
  REQUIRE(in.run.model);
  CHECK(in.run.model->rotary_size == 32);  // a quarter of 1024 / 8
  CHECK(in.run.model->positions == 0);
}

TEST_CASE("--qk-layernorm norms each head, and in latent attention what is compressed") {
  const std::string sizes =
      "--num-layers 4 --hidden-size 1024 --num-attention-heads 8 --ffn-hidden-size 4096 --vocab-size 512 "
      "--position-embedding-type rope --swiglu --qk-layernorm ";
  const auto norms = [](const Imported& in) { return in.run.model.value().query_key_norms; };
  CHECK(norms(read_by("megatron", sizes)) == QueryKeyNorms::kEachHead);
  const Imported latent = read_by("megatron", sizes +
                                                  "--multi-latent-attention --kv-lora-rank 64 --q-lora-rank 96 "
                                                  "--qk-head-dim 32 --qk-pos-emb-head-dim 16 --v-head-dim 32");
  CHECK(norms(latent) == QueryKeyNorms::kNone);
  CHECK(latent.run.model.value().kv_rank == 64);
}

TEST_CASE("DeepSpeed's auto and its other keys leave open what they say nothing of") {
  const Imported in = read_by("deepspeed", R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 4,
      "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "overlap_comm": true}})",
                              {{"devices", 16}});
  CHECK(!in.run.global_batch);
  CHECK(in.run.layout.zero == 3);
  CHECK(in.run.layout.data == 16);
  CHECK(in.run.precision == Precision::kBf16);
  CHECK(in.ignored == std::vector<std::string>{"zero_optimization.overlap_comm"});
  CHECK(in.stack == "deepspeed");
}

TEST_CASE("a job of torchtitan takes the defaults of what it does not say") {
  const Imported in = read_by("torchtitan",
                              "[training]\nlocal_batch_size = 1\nseq_len = 8192\n[parallelism]\n"
                              "tensor_parallel_degree = 8\n[activation_checkpoint]\nmode = \"none\"\n",
                              {{"devices", 64}});
  CHECK(to_text(layout_of(in.run.layout)) == "dp=8,tp=8,pp=1,v=1,zero=3,sp=1,mbs=1,recompute=none,schedule=1f1b");
  CHECK(!in.run.global_batch);
}

TEST_CASE("PyTorch's names of schedules are known in any case, and give a rank two stages where they are for several") {
  const Imported in = read_by("torchtitan",
                              "[parallelism]\npipeline_parallel_degree = 4\n"
                              "pipeline_parallel_schedule = \"interleaved1f1b\"\ndata_parallel_shard_degree = 2\n"
                              "[activation_checkpoint]\nmode = \"full\"\nselective_ac_option = \"op\"\n");
  CHECK(in.run.layout.schedule == "interleaved");
  CHECK(in.run.layout.chunks == 2);
  CHECK(in.run.layout.zero == 2);
}

TEST_CASE("the first layers of each stage alone are rebuilt by the method block") {
  const auto rebuilt = [](const char* keys) {
    return read_by("megatron", std::string("--recompute-granularity full --recompute-method ") + keys)
        .run.layout.recompute_layers;
  };
  CHECK(rebuilt("block --recompute-num-layers 3") == 3);
  CHECK(rebuilt("uniform --recompute-num-layers 1") == 0);
  CHECK(read_by("megatron", "--tensor-model-parallel-size 2").run.layout.recompute_layers == 0);
}

TEST_CASE("a value without a counterpart is refused with its key, and what may stand there") {
  check_refused<SpecError>([] { read_by("megatron", "--recompute-granularity full --recompute-method all"); }, "file",
                           "--recompute-method is all, which is not modelled");
  check_refused<SpecError>(
      [] { read_by("megatron", "--recompute-granularity full --recompute-method uniform --recompute-num-layers 4"); },
      "file", "chunks of 4 layers");
  check_refused<SpecError>([] { read_by("megatron", "--recompute-granularity full --recompute-method block"); }, "file",
                           "give their number");
  check_refused<SpecError>([] { read_by("megatron", "--use-megatron-fsdp --tensor-model-parallel-size 2"); }, "file",
                           "--use-megatron-fsdp");
  check_refused<SpecError>([] { read_by("megatron", "--recompute-activations --tensor-model-parallel-size 2"); },
                           "file", "--recompute-granularity selective");
  check_refused<SpecError>([] { read_by("fsdp2", "distributed_type: DEEPSPEED\nnum_processes: 8\n"); }, "file",
                           "distributed_type is DEEPSPEED");
  check_refused<SpecError>([] { read_by("torchtitan", "[activation_checkpoint]\nmode = \"selective\"\n"); }, "file",
                           "recompute");
}

TEST_CASE("settings that contradict each other are refused") {
  check_refused<SpecError>(
      [] {
        read_by("megatron",
                "--num-experts 8 --tensor-model-parallel-size 2 --nproc-per-node 8 --attention-dropout 0.1 "
                "--hidden-dropout 0.2");
      },
      "file", "model.dropout");
  check_refused<SpecError>(
      [] { read_by("deepspeed", R"({"pipeline": {"stages": 4}, "zero_optimization": {"stage": 3}})"); }, "file",
      "ZeRO 0 and 1 alone");
}

TEST_CASE("the last of an argument that is given twice counts, as in argparse") {
  CHECK(read_by("megatron", "--tensor-model-parallel-size 2 --tensor-model-parallel-size 4").run.layout.tensor == 4);
}

TEST_CASE("the settings of a file that are in a table tell its target") {
  const Settings job =
      read_settings(SettingsForm::kYaml, "parallelism:\n  dp: 2\n  tp: 4\ntokens:\n  micro_batch_size: 1\n", "file");
  CHECK(known_settings(target_named("nanotron"), job) == 3);
  CHECK(known_settings(target_named("fsdp2"), job) == 0);
}
