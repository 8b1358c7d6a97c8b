// Parameters of published models, read from their configurations, as their repositories and authors count them.

#include <doctest/doctest.h>

#include "planner/spec/huggingface/huggingface.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/spec/huggingface/published_configurations.h"

namespace plumb::test {
namespace {

/// A published configuration, the trained parameters that its repository counts, and the parts of them that are not
/// priced.
struct PublishedConfiguration {
  const char* text;
  std::int64_t parameters;
  std::int64_t left_out;  ///< counted there, not here
  std::int64_t put_in;    ///< counted here, not there: biases of norms, a norm that two branches share
};

}  // namespace

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

}  // namespace plumb::test
