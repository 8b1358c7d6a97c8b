#include "planner/spec/huggingface.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb {
namespace {

// The keys of published config.json files that bear on sizes, and some that do not.
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
const char* const kPythia = R"({"model_type": "gpt_neox", "hidden_act": "gelu", "hidden_size": 4096,
  "intermediate_size": 16384, "layer_norm_eps": 1e-05, "num_attention_heads": 32, "num_hidden_layers": 32,
  "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": false, "use_parallel_residual": true,
  "vocab_size": 50432})";

/// The preset's sizes under the file's name and source.
void check_same_sizes(const char* text, const char* preset) {
  CAPTURE(preset);
  const ModelSpec imported = model_from_huggingface(text, "config.json").model;
  ModelSpec expected = preset_model(preset);
  expected.name = imported.name;
  expected.source = imported.source;
  expected.sequence = imported.sequence;  // the file says what the model takes, the preset what it was trained on
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
  refused(kLlama3, "model_type", "mamba", "qwen2");
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
  refused(kGpt2, "activation_function", "relu", "gelu");
  refused(kLlama3, "attention_bias", true, "mlp_bias");
  refused(kQwen3, "attention_bias", true, "attention_bias");
  refused(kDeepSeekV3, "attention_bias", true, "attention_bias");
  refused(kDeepSeekV3, "moe_layer_freq", 2, "moe_layer_freq");
  refused(kDeepSeekV3, "first_k_dense_replace", 61, "dense_layers");
  refused(kDeepSeekV3, "first_k_dense_replace", -1, "first_k_dense_replace");
  refused(kQwen3Moe, "decoder_sparse_step", 2, "decoder_sparse_step");
  refused(kQwen3Moe, "mlp_only_layers", {0, 1}, "mlp_only_layers");
  refused(kMixtral, "num_experts_per_tok", 9, "experts_per_token");
  refused(kLlama3, "num_key_value_heads", 5, "num_key_value_heads");
  check_refused<SpecError>([] { model_from_huggingface("{\"model_type\": ", "config.json"); }, "config.json", "line 1");
}

}  // namespace plumb
