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
  refused(kLlama3, "num_key_value_heads", 5, "num_key_value_heads");
  check_refused<SpecError>([] { model_from_huggingface("{\"model_type\": ", "config.json"); }, "config.json", "line 1");
}

}  // namespace plumb
