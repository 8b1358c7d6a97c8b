#include "planner/exchange/logged_settings.h"

#include <doctest/doctest.h>

#include "planner/exchange/import_settings.h"
#include "planner/logs/text_lines.h"
#include "tests/planner/exchange/exchange_fixtures.h"

namespace plumb::test {
namespace {

std::optional<LoggedSettings> read_log(std::string_view text) {
  LoggedSettingsReader reader(all_targets());
  for (const std::string_view line : lines_of(text)) reader.take(line);
  return reader.finish();
}

// Megatron-LM prints every argument, also those that nobody gave.
const char* const kPrintedArguments = R"(using world size: 64, data-parallel size: 4
------------------------ arguments ------------------------
  accumulate_allreduce_grads_in_fp32 .............. True
  add_bias_linear ................................. False
0:   add_qkv_bias .................................... False
  attention_dropout ............................... 0.0
  bf16 ............................................ True
  bias_gelu_fusion ................................ False
  context_parallel_size ........................... 1
  cp_comm_type .................................... ['p2p']
  data_path ....................................... ['0.5', 'a .. b']
  expert_model_parallel_size ...................... 1
  expert_tensor_parallel_size ..................... 4
  ffn_hidden_size ................................. 14336
  fp16 ............................................ False
  fp8 ............................................. None
  global_batch_size ............................... 128
  group_query_attention ........................... True
  hidden_dropout .................................. 0.0
  hidden_size ..................................... 4096
  kv_channels ..................................... 128
  kv_lora_rank .................................... 32
  max_position_embeddings ......................... 8192
  micro_batch_size ................................ 1
  microbatch_group_size_per_virtual_pipeline_stage . 4
  multi_latent_attention .......................... False
  normalization ................................... RMSNorm
  num_attention_heads ............................. 32
  num_experts ..................................... None
  num_layers ...................................... 32
  num_query_groups ................................ 8
  pipeline_model_parallel_size .................... 4
  position_embedding_type ......................... rope
  rotary_base ..................................... 500000
  seq_length ...................................... 8192
  sequence_parallel ............................... True
  swiglu .......................................... True
  tensor_model_parallel_size ...................... 4
  untie_embeddings_and_output_weights ............. True
  use_distributed_optimizer ....................... True
  virtual_pipeline_model_parallel_size ............ None
  vocab_size ...................................... 128256
  world_size ...................................... 64
-------------------- end of arguments ---------------------
)";

}  // namespace

TEST_CASE("the arguments that Megatron prints give the run, whatever defaults stand beside them") {
  const auto logged = read_log(kPrintedArguments);
  REQUIRE(logged);
  CHECK(logged->target.name == "megatron");
  const Imported read = import_settings(logged->target, logged->settings, logged->facts, "run.log");
  CHECK(to_text(layout_of(read.run.layout)) == "dp=4,tp=4,pp=4,v=1,zero=1,sp=1,mbs=1,recompute=none,schedule=1f1b");
  CHECK(read.run.global_batch == 128);
  REQUIRE(read.run.model);
  CHECK(read.run.model->kv_heads == 8);
  CHECK(read.run.model->layers == 32);
  CHECK(read.ignored.empty());
}

TEST_CASE("the JSON that DeepSpeed and torchtitan print is read behind their words") {
  const auto deepspeed = read_log(
      "[2026-01-01 00:00:00,000] [INFO] [config.py:1003:print]   json = {\n    \"train_batch_size\": 64, \n"
      "    \"zero_optimization\": {\n        \"stage\": 3\n    }, \n    \"steps_per_print\": 10\n}\nmore\n");
  REQUIRE(deepspeed);
  CHECK(deepspeed->target.name == "deepspeed");
  CHECK(deepspeed->settings.size() == 2);
  const auto torchtitan = read_log(
      "[rank0]:[titan] 2026-01-01 - root - INFO - Running with configs: {\n"
      "[rank0]:  \"parallelism\": {\"tensor_parallel_degree\": 2}\n[rank0]:}\n");
  REQUIRE(torchtitan);
  CHECK(torchtitan->target.name == "torchtitan");
}

TEST_CASE("a log without settings, or with words that begin alike, has none") {
  CHECK_FALSE(read_log("step 1 loss 2\n"));
  CHECK_FALSE(read_log("Running with {many} workers\nstep 1\n"));
  CHECK_FALSE(read_log("---- arguments ----\n  bf16 ...... True\n"));  // cut before their end
}

}  // namespace plumb::test
