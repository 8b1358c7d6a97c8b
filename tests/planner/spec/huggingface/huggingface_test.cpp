#include "planner/spec/huggingface/huggingface.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"
#include "tests/planner/spec/huggingface/published_configurations.h"

namespace plumb::test {
namespace {

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
