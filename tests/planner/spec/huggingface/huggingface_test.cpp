#include "planner/spec/huggingface/huggingface.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

// These texts have the keys of published config.json files that bear on sizes, and some that do not.
const char* const kLlama3 =
    R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256})";
const char* const kMistral = R"({"model_type": "mistral", "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false,
  "vocab_size": 32000})";
const char* const kQwen2 = R"({"model_type": "qwen2", "hidden_act": "silu", "hidden_size": 3584,
  "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072, "use_sliding_window": false,
  "tie_word_embeddings": false, "vocab_size": 152064})";
const char* const kMixtral = R"({"model_type": "mixtral", "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "rms_norm_eps": 1e-05,
  "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false,
  "vocab_size": 32000})";
const char* const kQwen3 = R"({"model_type": "qwen3", "attention_bias": false, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 5120, "intermediate_size": 25600, "max_position_embeddings": 40960, "max_window_layers": 64,
  "num_attention_heads": 64, "num_hidden_layers": 64, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
  "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": false,
  "use_sliding_window": false, "vocab_size": 151936})";
const char* const kQwen3Moe = R"({"model_type": "qwen3_moe", "attention_bias": false, "decoder_sparse_step": 1,
  "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144,
  "max_position_embeddings": 40960, "mlp_only_layers": [], "moe_intermediate_size": 768, "norm_topk_prob": true,
  "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
  "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": null,
  "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936})";
const char* const kDeepSeekV3 = R"({"model_type": "deepseek_v3", "attention_bias": false, "first_k_dense_replace": 3,
  "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
  "max_position_embeddings": 163840, "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256,
  "n_shared_experts": 1, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
  "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 10000, "tie_word_embeddings": false,
  "v_head_dim": 128, "vocab_size": 129280})";
const char* const kGpt2 = R"({"model_type": "gpt2", "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05,
  "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257})";
const char* const kMamba2 =
    R"({"model_type": "mamba2", "chunk_size": 256, "conv_kernel": 4, "expand": 2, "head_dim": 64,
  "hidden_act": "silu", "hidden_size": 4096, "layer_norm_epsilon": 1e-05, "n_groups": 8, "num_heads": 128,
  "num_hidden_layers": 64, "residual_in_fp32": true, "rms_norm": true, "state_size": 128,
  "tie_word_embeddings": false, "time_step_rank": 256, "use_bias": false, "use_conv_bias": true,
  "vocab_size": 32768})";
const char* const kPythia = R"({"model_type": "gpt_neox", "hidden_act": "gelu", "hidden_size": 4096,
  "intermediate_size": 16384, "layer_norm_eps": 1e-05, "num_attention_heads": 32, "num_hidden_layers": 32,
  "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": false, "use_parallel_residual": true,
  "vocab_size": 50432})";

const char* const kOpt = R"({"model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "num_hidden_layers": 32,
  "num_attention_heads": 32, "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 4096})";
const char* const kStableLm = R"({"model_type": "stablelm", "hidden_size": 2560, "intermediate_size": 6912,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 50304})";
const char* const kDeepSeekV2 = R"({"model_type": "deepseek_v2", "first_k_dense_replace": 1, "hidden_act": "silu",
  "hidden_size": 5120, "intermediate_size": 12288, "kv_lora_rank": 512, "moe_intermediate_size": 1536,
  "moe_layer_freq": 1, "n_routed_experts": 160, "n_shared_experts": 2, "num_attention_heads": 128,
  "num_experts_per_tok": 6, "num_hidden_layers": 60, "num_key_value_heads": 128, "q_lora_rank": 1536,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 10000,
  "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 102400})";
const char* const kNemotron = R"({"model_type": "nemotron", "hidden_size": 6144, "intermediate_size": 24576,
  "num_hidden_layers": 32, "num_attention_heads": 48, "num_key_value_heads": 8, "vocab_size": 256000,
  "hidden_act": "relu2", "partial_rotary_factor": 0.5, "norm_eps": 1e-5})";

const char* const kJamba = R"({"model_type": "jamba", "attn_layer_offset": 4, "attn_layer_period": 8,
  "expert_layer_offset": 1, "expert_layer_period": 2, "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256,
  "mamba_expand": 2, "mamba_proj_bias": false, "num_attention_heads": 32, "num_experts": 16, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "sliding_window": null,
  "tie_word_embeddings": false, "vocab_size": 65536})";
const char* const kQwen3Next = R"({"model_type": "qwen3_next", "attention_bias": false, "decoder_sparse_step": 1,
  "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 5120,
  "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
  "linear_value_head_dim": 128, "mlp_only_layers": [], "moe_intermediate_size": 512, "norm_topk_prob": true,
  "num_attention_heads": 16, "num_experts": 512, "num_experts_per_tok": 10, "num_hidden_layers": 48,
  "num_key_value_heads": 2, "partial_rotary_factor": 0.25, "rms_norm_eps": 1e-06, "rope_theta": 10000000,
  "shared_expert_intermediate_size": 512, "tie_word_embeddings": false, "vocab_size": 151936})";
const char* const kNemotronH = R"({"model_type": "nemotron_h", "attention_bias": false, "attention_head_dim": 128,
  "chunk_size": 128, "conv_kernel": 4, "expand": 2, "hidden_size": 4096,
  "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", "intermediate_size": 21504,
  "mamba_head_dim": 64, "mamba_num_heads": 128, "mamba_proj_bias": false, "mlp_bias": false, "mlp_hidden_act": "relu2",
  "n_groups": 8, "num_attention_heads": 32, "num_hidden_layers": 52, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
  "ssm_state_size": 128, "tie_word_embeddings": false, "use_bias": false, "use_conv_bias": true, "vocab_size": 131072})";
const char* const kFalconH1 = R"({"model_type": "falcon_h1", "attention_bias": false, "head_dim": 128,
  "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 21504, "mamba_chunk_size": 256,
  "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 128, "mamba_d_ssm": 4096, "mamba_d_state": 256,
  "mamba_n_groups": 2, "mamba_n_heads": 32, "mamba_proj_bias": false, "mamba_rms_norm": true, "mlp_bias": false,
  "num_attention_heads": 20, "num_hidden_layers": 72, "num_key_value_heads": 4, "projectors_bias": false,
  "rms_norm_eps": 1e-05, "rope_theta": 100000000000.0, "tie_word_embeddings": false, "vocab_size": 261120})";

/// A published configuration, the trained parameters that its repository counts, and the parts of them that are not
/// priced.
struct PublishedConfiguration {
  const char* text;
  std::int64_t parameters;
  std::int64_t left_out;  ///< counted there, not here
  std::int64_t put_in;    ///< counted here, not there: biases of norms, a norm that two branches share
};

/// Checks the preset's sizes under the file's name and source.
void check_same_sizes(const char* text, const char* preset) {
  CAPTURE(preset);
  const ModelSpec imported = model_from_huggingface(text, "config.json").model;
  ModelSpec expected = preset_model(preset);
  expected.name = imported.name;
  expected.source = imported.source;
  expected.mtp_modules = imported.mtp_modules;  // presets are main models
  expected.sequence = imported.sequence;        // the file says what the model takes, the preset what it was trained on
  CHECK(imported == expected);
}

}  // namespace

TEST_CASE("a Hugging Face configuration of each family is the preset of that model") {
  check_same_sizes(kLlama3, "llama-3-8b");
  check_same_sizes(kMistral, "mistral-7b");
  check_same_sizes(kQwen2, "qwen2-7b");
  check_same_sizes(kMixtral, "mixtral-8x7b");
  check_same_sizes(kQwen3, "qwen3-32b");
  check_same_sizes(kQwen3Moe, "qwen3-30b-a3b");
  check_same_sizes(kDeepSeekV3, "deepseek-v3");
  check_same_sizes(kGpt2, "gpt2");
  check_same_sizes(kPythia, "pythia-6.9b");
  check_same_sizes(kNemotron, "nemotron-4-15b");
  check_same_sizes(kDeepSeekV2, "deepseek-v2");
  check_same_sizes(kJamba, "jamba-v0.1");
  check_same_sizes(kQwen3Next, "qwen3-next-80b-a3b");
  check_same_sizes(kNemotronH, "nemotron-h-8b");
  check_same_sizes(kFalconH1, "falcon-h1-34b");
}

TEST_CASE("parameters of a configuration of each family are those that its repository counts") {
  // These are the totals of the published checkpoints.
  const PublishedConfiguration kPublished[] = {
      // bigcode/starcoder
      {R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_layer": 40, "n_inner": 24576,
           "n_positions": 8192, "multi_query": true, "vocab_size": 49152})",
       15517456384, 0, 0},
      // bigcode/starcoder2-7b
      {R"({"model_type": "starcoder2", "hidden_size": 4608, "intermediate_size": 18432, "num_hidden_layers": 32,
           "num_attention_heads": 36, "num_key_value_heads": 4, "vocab_size": 49152, "use_bias": true,
           "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5, "sliding_window": 4096})",
       7173923840, 0, 0},
      // google/gemma-7b
      {R"({"model_type": "gemma", "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
           "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "vocab_size": 256000,
           "hidden_act": "gelu", "rms_norm_eps": 1e-6})",
       8537680896, 0, 0},
      // microsoft/Phi-3-mini-4k-instruct
      {R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064, "hidden_act": "silu"})",
       3821079552, 0, 0},
      // ibm-granite/granite-3.0-8b-instruct
      {R"({"model_type": "granite", "hidden_size": 4096, "intermediate_size": 12800, "num_hidden_layers": 40,
           "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 49155, "tie_word_embeddings": true})",
       8170848256, 0, 0},
      // stabilityai/stablelm-3b-4e1t
      {kStableLm, 2795443200, 0, 0},
      // bigscience/bloom-7b1: without the norm behind the embedding
      {R"({"model_type": "bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32, "vocab_size": 250880})",
       7069016064, 2 * 4096, 0},
      // tiiuae/falcon-7b: two norms a layer
      {R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
           "multi_query": true, "parallel_attn": true, "vocab_size": 65024, "bias": false, "alibi": false})",
       6921720704, 0, 32 * 2 * 4544},
      // facebook/opt-6.7b
      {kOpt, 6658473984, 0, 0},
      {kMamba2, 7285403648, 0, 0},  // mistralai/Mamba-Codestral-7B-v0.1
      // mosaicml/mpt-7b: norms with biases
      {R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4,
           "max_seq_len": 2048, "vocab_size": 50432, "no_bias": true, "attn_config": {"alibi": true}})",
       6649286656, 0, 65 * 4096},
      // allenai/OLMo-7B-hf: norms with parameters
      {R"({"model_type": "olmo", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "vocab_size": 50304, "tie_word_embeddings": false})",
       6888095744, 0, 65 * 2 * 4096},
      // allenai/OLMo-2-1124-7B
      {R"({"model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "vocab_size": 100352, "tie_word_embeddings": false})",
       7298617344, 0, 0},
      // databricks/dbrx-base: norms with biases
      {R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
           "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
           "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "rope_theta": 500000}})",
       131596523520, 0, 81 * 6144},
      // Qwen/Qwen1.5-MoE-A2.7B: without the shared experts' gates
      {R"({"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
           "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 151936, "num_experts": 60,
           "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4})",
       14315784192, 24 * 2048, 0},
      // allenai/OLMoE-1B-7B-0924
      {R"({"model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024, "num_hidden_layers": 16,
           "num_attention_heads": 16, "vocab_size": 50304, "num_experts": 64, "num_experts_per_tok": 8})",
       6919161856, 0, 0},
      // CohereForAI/c4ai-command-r-v01: two norms a layer, with biases
      {R"({"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
           "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 256000, "rope_theta": 8000000.0})",
       34980831232, 0, (2 * 81 - 41) * 8192},
      // google/gemma-2-9b: without the norms behind attention and MLP
      {R"({"model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
           "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000,
           "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 4096, "attn_logit_softcapping": 50.0})",
       9241705984, 42 * 2 * 3584, 0},
      // google/gemma-3-1b-it: without those
      {R"({"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26,
           "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262144,
           "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 512, "sliding_window_pattern": 6})",
       999885952, 26 * 2 * 1152, 0},
      // microsoft/phi-2: without the head's bias; two norms a layer
      {R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
           "num_attention_heads": 32, "vocab_size": 51200, "partial_rotary_factor": 0.4, "hidden_act": "gelu_new"})",
       2779683840, 51200, 32 * 2 * 2560},
      // microsoft/Phi-3.5-MoE-instruct: without the biases of the attention's output and of the head
      {R"({"model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32064, "num_local_experts": 16,
           "attention_bias": true, "lm_head_bias": true, "sliding_window": 131072})",
       41873153344, 32064 + 32 * 4096, 0},
      // CohereForAI/c4ai-command-r7b-12-2024: two norms a layer, with biases
      {R"({"model_type": "cohere2", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 256000,
           "sliding_window": 4096, "sliding_window_pattern": 4})",
       8028033024, 0, (2 * 65 - 33) * 4096},
      // openai/gpt-oss-20b: without sinks and the biases of experts and routers
      {R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
           "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
           "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128})",
       20914757184, 24 * (64 + 32 * (3 * 2880 + 1)), 0},
  };
  for (const PublishedConfiguration& published : kPublished) {
    CAPTURE(published.text);
    const ModelSpec model = model_from_huggingface(published.text, "config.json").model;
    CHECK(model_parameter_count(model) == published.parameters - published.left_out + published.put_in);
  }
}

TEST_CASE("norms of queries and keys are of each head, of all heads, or of none, as the class or a flag says") {
  const auto norms = [](const std::string& text, const char* flag = nullptr) {
    nlohmann::json json = nlohmann::json::parse(text);
    if (flag != nullptr) json[flag] = true;
    return model_from_huggingface(json.dump(), "config.json").model.query_key_norms;
  };
  CHECK(norms(kQwen3) == QueryKeyNorms::kEachHead);
  CHECK(norms(kQwen3Moe) == QueryKeyNorms::kEachHead);
  CHECK(norms(kQwen3Next) == QueryKeyNorms::kEachHead);
  CHECK(norms(kLlama3) == QueryKeyNorms::kNone);
  CHECK(norms(kStableLm) == QueryKeyNorms::kNone);
  CHECK(norms(kStableLm, "qk_layernorm") == QueryKeyNorms::kEachHead);
  const std::string sizes =
      R"("hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 2, "num_attention_heads": 32,
         "vocab_size": 1024})";
  CHECK(norms(R"({"model_type": "olmo2", )" + sizes) == QueryKeyNorms::kAllHeads);
  CHECK(norms(R"({"model_type": "olmoe", )" + sizes) == QueryKeyNorms::kAllHeads);
  CHECK(norms(R"({"model_type": "gemma3_text", "head_dim": 128, )" + sizes) == QueryKeyNorms::kEachHead);
  CHECK(norms(R"({"model_type": "glm4_moe", )" + sizes) == QueryKeyNorms::kNone);
  CHECK(norms(R"({"model_type": "glm4_moe", )" + sizes, "use_qk_norm") == QueryKeyNorms::kEachHead);
  CHECK(norms(R"({"model_type": "cohere", )" + sizes, "use_qk_norm") == QueryKeyNorms::kEachHead);
  CHECK(norms(R"({"model_type": "phi", "hidden_act": "gelu_new", )" + sizes, "qk_layernorm") ==
        QueryKeyNorms::kEachHead);
}

TEST_CASE("GLM-4.5-Air has the 106 billion parameters that its authors count") {  // Zeng et al. 2025, table 1
  const ModelSpec model = model_from_huggingface(R"({"model_type": "glm4_moe", "hidden_size": 4096,
      "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 128, "n_shared_experts": 1,
      "num_experts_per_tok": 8, "first_k_dense_replace": 1, "num_hidden_layers": 46, "num_attention_heads": 96,
      "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true, "vocab_size": 151552,
      "partial_rotary_factor": 0.5})",
                                                 "config.json")
                              .model;
  CHECK(static_cast<double>(model_parameter_count(model)) == doctest::Approx(106e9).epsilon(0.01));
  CHECK(model.qkv_bias);
  CHECK(model.dense_layers == 1);
  CHECK(model.rotary_size == 64);
}

TEST_CASE("Llama 4 Scout has 17 billion active of 109 billion parameters, and only its text model is read") {
  const ImportedModel imported = model_from_huggingface(R"({"model_type": "llama4", "tie_word_embeddings": false,
      "vision_config": {"hidden_size": 1408}, "text_config": {"model_type": "llama4_text", "hidden_size": 5120,
      "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048, "num_local_experts": 16,
      "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "attention_chunk_size": 8192}})",
                                                        "config.json");
  CHECK(static_cast<double>(model_parameter_count(imported.model)) == doctest::Approx(109e9).epsilon(0.02));
  CHECK(static_cast<double>(active_parameter_count(imported.model)) == doctest::Approx(17e9).epsilon(0.02));
  CHECK(imported.note.find("text model") != std::string::npos);
  CHECK(imported.ignored_keys.empty());
}

TEST_CASE("Llama 4 Maverick has experts in every second layer, and wide MLPs between") {
  const auto maverick = [](const char* more) {
    return model_from_huggingface(std::string(R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text",
      "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48,
      "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048,
      "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
      "attention_chunk_size": 8192, "max_position_embeddings": 1048576)") +
                                      more + "}}",
                                  "config.json")
        .model;
  };
  ModelSpec model = maverick("");
  const ModelSpec preset = preset_model("llama-4-maverick");
  CHECK(maverick(R"(, "no_rope_layers": [], "moe_layers": [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
      33, 35, 37, 39, 41, 43, 45, 47])") == model);
  CHECK_THROWS_AS(maverick(R"(, "moe_layers": [1, 3])"), SpecError);
  model.name = preset.name;
  model.source = preset.source;
  model.sequence = preset.sequence;
  CHECK(model == preset);
}

TEST_CASE("modules of multi-token prediction are read") {
  const ImportedModel imported = model_from_huggingface(kDeepSeekV3, "config.json");
  CHECK(imported.model.mtp_modules == 1);
  CHECK(imported.note.empty());
  CHECK(imported.ignored_keys.empty());
  CHECK(model_from_huggingface(kDeepSeekV2, "config.json").model.mtp_modules == 0);
}

TEST_CASE("what is not modelled is said, and no other model proposed") {
  const auto refused = [](const std::string& type, const std::string& key, const char* value, const char* says) {
    CAPTURE(key);
    const std::string text = R"({"model_type": ")" + type + R"(", "hidden_size": 512, "intermediate_size": 1024,
        "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1000, ")" +
                             key + "\": " + value + "}";
    check_refused<SpecError>([&] { model_from_huggingface(text, "config.json"); }, "config.json: " + key, says);
    CHECK(refusal([&] { model_from_huggingface(text, "config.json"); }).find("set it") == std::string::npos);
  };
  refused("llama4_text", "moe_layers", "[0]", "experts in other layers than the last of each period are not modelled");
  refused("qwen3_moe", "mlp_only_layers", "[1]", "not modelled");
  refused("deepseek_v3", "moe_layer_freq", "2", "not modelled");
  refused("qwen3_moe", "attention_bias", "true", "biases on the attention alone are not modelled");
  refused("llama", "attention_bias", "true", "not modelled");
}

TEST_CASE("sizes that a file of Gemma 3 leaves out are its class's, and of six layers one sees the whole past") {
  const ModelSpec model = model_from_huggingface(R"({"model_type": "gemma3", "text_config": {"hidden_size": 2560,
      "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024, "model_type": "gemma3_text"}})",
                                                 "config.json")
                              .model;
  CHECK(static_cast<double>(model_parameter_count(model)) == doctest::Approx(3.88e9).epsilon(0.01));
  CHECK(model.window == 1024);
  CHECK(model.full_attention_every == 6);
}

TEST_CASE("BERT is the preset's graph, RoBERTa one without segments and next sentences") {
  const char* const kBert = R"({"model_type": "bert", "hidden_size": 768, "intermediate_size": 3072,
      "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 30522, "hidden_dropout_prob": 0.1})";
  const ModelSpec bert = model_from_huggingface(kBert, "config.json").model;
  CHECK(bert.name == "config.json");
  CHECK(model_parameter_count(bert) == 110'106'428);
  const auto definition = [](const ModelSpec& model) {
    nlohmann::json json = nlohmann::json::parse(model.graph->definition);
    json.erase("name");
    json.erase("source");
    return json;
  };
  CHECK(definition(bert) == definition(preset_model("bert-base")));
  // roberta-base counts 124,697,433 with the head of masked words, whose bias is left out here.
  const char* const kRoberta = R"({"model_type": "roberta", "hidden_size": 768, "intermediate_size": 3072,
      "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 50265, "max_position_embeddings": 514,
      "type_vocab_size": 1})";
  const ModelSpec roberta = model_from_huggingface(kRoberta, "config.json").model;
  CHECK(std::abs(model_parameter_count(roberta) - 124'697'433) <= 50'265);
  CHECK(roberta.sequence == 512);
}

TEST_CASE("keys that bear on no size are ignored and listed in order") {
  const std::vector<std::string> ignored = model_from_huggingface(kLlama3, "config.json").ignored_keys;
  CHECK(ignored ==
        std::vector<std::string>{"architectures", "attention_dropout", "bos_token_id", "rope_scaling", "torch_dtype"});
}

TEST_CASE("defaults are the family's") {
  const auto edited = [](const char* text, auto edit) {
    nlohmann::json json = nlohmann::json::parse(text);
    edit(json);
    return model_from_huggingface(json.dump(), "config.json").model;
  };
  CHECK(edited(kLlama3, [](auto&) {}).sequence == 8192);
  CHECK(edited(kQwen2, [](auto&) {}).sequence == 0);  // the file does not say
  CHECK(edited(kGpt2, [](auto&) {}).sequence == 1024);
  CHECK(edited(kGpt2, [](auto&) {}).tied_embeddings);
  CHECK(!edited(kGpt2, [](auto& j) { j["tie_word_embeddings"] = false; }).tied_embeddings);
  CHECK(edited(kGpt2, [](auto& j) { j["n_inner"] = nullptr; }).ffn == 3072);
  CHECK(edited(kGpt2, [](auto& j) { j["n_inner"] = 1000; }).ffn == 1000);
  CHECK(!edited(kLlama3, [](auto& j) { j.erase("tie_word_embeddings"); }).tied_embeddings);
  CHECK(edited(kLlama3, [](auto& j) { j.erase("num_key_value_heads"); }).kv_heads == 32);
  CHECK(edited(kLlama3, [](auto& j) { j["head_dim"] = 64; }).head_size == 64);
  CHECK(edited(kMistral, [](auto& j) { j["sliding_window"] = nullptr; }).window == 0);
  CHECK(edited(kMistral, [](auto& j) { j.erase("sliding_window"); }).window == 4096);
  CHECK(edited(kQwen2, [](auto& j) { j["use_sliding_window"] = true; }).window == 131072);
  CHECK(edited(kQwen2, [](auto&) {}).qkv_bias);
  CHECK(edited(kMixtral, [](auto& j) { j["sliding_window"] = 4096; }).window == 4096);
  CHECK(edited(kMixtral, [](auto& j) { j.erase("num_local_experts"); }).experts == 8);
  CHECK(edited(kMixtral, [](auto& j) { j.erase("rope_theta"); }).rope_theta == 1e6);
  CHECK(edited(kMixtral, [](auto& j) { j.erase("num_key_value_heads"); }).kv_heads == 8);
  CHECK(edited(kQwen3, [](auto& j) { j.erase("head_dim"); }).head_size == 128);
  CHECK(edited(kQwen3Moe, [](auto& j) { j.erase("head_dim"); }).head_size == 64);
  CHECK(edited(kQwen3Moe, [](auto& j) { j["mlp_only_layers"] = nullptr; }).experts == 128);
  CHECK(edited(kQwen3Moe, [](auto& j) { j["decoder_sparse_step"] = 2; }).experts_every == 2);
  CHECK(edited(kDeepSeekV3, [](auto& j) { j["q_lora_rank"] = nullptr; }).query_rank == 0);
  CHECK(edited(kDeepSeekV3, [](auto& j) { j.erase("q_lora_rank"); }).query_rank == 1536);
  CHECK(edited(kDeepSeekV3, [](auto& j) { j["n_shared_experts"] = 2; }).shared_ffn == 4096);
  CHECK(edited(kDeepSeekV3, [](auto& j) { j["first_k_dense_replace"] = 0; }).dense_layers == 0);
  CHECK(edited(kDeepSeekV3, [](auto& j) { j["head_dim"] = 64; }).head_size == 192);
  CHECK(!edited(kPythia, [](auto& j) { j["use_parallel_residual"] = false; }).parallel_residual);
  CHECK(edited(kPythia, [](auto& j) { j["rotary_pct"] = 1.0; }).rotary_size == 128);
  CHECK(edited(kPythia, [](auto& j) { j["hidden_act"] = "gelu_fast"; }).exact_gelu == false);
}

TEST_CASE("a configuration that cannot be priced is refused with place and remedy") {
  const auto refused = [](const char* text, const char* key, nlohmann::json value, const char* part) {
    nlohmann::json json = nlohmann::json::parse(text);
    if (value.is_null())
      json.erase(key);
    else
      json[key] = std::move(value);
    CAPTURE(key);
    check_refused<SpecError>([&] { model_from_huggingface(json.dump(), "config.json"); }, "config.json", part);
  };
  refused(kLlama3, "model_type", nullptr, "model_type");
  refused(kLlama3, "model_type", "unheard_of", "qwen2");
  refused(kLlama3, "model_type", "mamba", "state space");
  refused(kMamba2, "expand", 3, "expand times hidden_size");
  refused(kMamba2, "rms_norm", false, "without its norm");
  refused(kLlama3, "model_type", "t5", "t5-small");
  for (const char* key :
       {"hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size"}) {
    refused(kLlama3, key, nullptr, key);
    refused(kLlama3, key, 0, key);
    refused(kLlama3, key, -1, key);
    refused(kLlama3, key, "big", key);
    refused(kLlama3, key, 1e15, "at most");
    refused(kPythia, key, nullptr, key);
  }
  for (const char* key : {"n_embd", "n_head", "n_layer", "n_positions", "vocab_size"})
    refused(kGpt2, key, nullptr, key);
  refused(kLlama3, "hidden_act", "relu", "silu");
  refused(kGpt2, "activation_function", "tanh", "gelu");
  refused(kOpt, "word_embed_proj_dim", 512, "word_embed_proj_dim");
  refused(kOpt, "ffn_dim", nullptr, "ffn_dim");
  refused(kStableLm, "partial_rotary_factor", 1.5, "share");
  refused(kDeepSeekV2, "n_routed_experts", nullptr, "n_routed_experts");
  refused(kLlama3, "attention_bias", true, "biases on the attention or the MLP alone are not modelled");
  refused(kQwen3, "attention_bias", true, "attention_bias");
  refused(kDeepSeekV3, "attention_bias", true, "attention_bias");
  refused(kDeepSeekV3, "moe_layer_freq", 2, "moe_layer_freq");
  refused(kDeepSeekV3, "first_k_dense_replace", 61, "dense_layers");
  refused(kDeepSeekV3, "first_k_dense_replace", -1, "first_k_dense_replace");
  refused(kQwen3Moe, "decoder_sparse_step", 49, "experts_every");
  refused(kQwen3Moe, "mlp_only_layers", {0, 1}, "mlp_only_layers");
  refused(kMixtral, "num_experts_per_tok", 9, "experts_per_token");
  refused(kLlama3, "num_key_value_heads", 5, "num_key_value_heads");
  check_refused<SpecError>([] { model_from_huggingface("{\"model_type\": ", "config.json"); }, "config.json", "line 1");
}

}  // namespace plumb::test
