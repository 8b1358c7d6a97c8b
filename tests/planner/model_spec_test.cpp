#include "planner/spec/model_spec.h"

#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb {
namespace {

struct Published {
  const char* preset;
  double parameters;
  const char* source;
};

// Exact where a model card counts them, otherwise as the paper rounds them.
constexpr Published kPublished[] = {
    {"gpt2", 124'439'808, "openai-community/gpt2, model page (124M in Radford et al. 2019's released models)"},
    {"gpt2-medium", 354'823'168, "openai-community/gpt2-medium, model page"},
    {"gpt2-large", 774'030'080, "openai-community/gpt2-large, model page"},
    {"gpt2-xl", 1'557'611'200, "openai-community/gpt2-xl, model page"},
    {"gpt3-175b", 174.6e9, "Narayanan et al. 2021, table 1"},
    {"llama-2-7b", 6'738'415'616, "meta-llama/Llama-2-7b-hf, model page"},
    {"llama-2-13b", 13'015'864'320, "meta-llama/Llama-2-13b-hf, model page"},
    {"llama-2-70b", 68'976'648'192, "meta-llama/Llama-2-70b-hf, model page"},
    {"llama-3-8b", 8'030'261'248, "meta-llama/Meta-Llama-3-8B, model page"},
    {"llama-3-70b", 70'553'706'496, "meta-llama/Meta-Llama-3-70B, model page"},
    {"llama-3.1-405b", 405'853'388'800, "meta-llama/Llama-3.1-405B, model page"},
    {"mistral-7b", 7'241'732'096, "mistralai/Mistral-7B-v0.1, model page"},
    {"qwen2-7b", 7'615'616'512, "Qwen/Qwen2-7B, model page"},
    {"qwen2-72b", 72'706'203'648, "Qwen/Qwen2-72B, model page"},
    {"gpt-neox-20b", 20'554'567'680, "EleutherAI/gpt-neox-20b, model card"},
    {"pythia-6.9b", 6'857'302'016, "Biderman et al. 2023, table 1"},
};

}  // namespace

TEST_CASE("every preset has the published number of parameters") {
  for (const Published& row : kPublished) {
    CAPTURE(row.preset);
    CAPTURE(row.source);
    const auto counted = static_cast<double>(model_parameter_count(preset_model(row.preset)));
    CHECK(std::abs(counted / row.parameters - 1) < 1e-3);
  }
  CHECK(model_parameter_count(preset_model("llama-3-8b")) == 8'030'261'248);
}

TEST_CASE("DeepSeek-V2 has the 236 and active 21 billion parameters to which its paper rounds") {
  const ModelSpec model = preset_model("deepseek-v2");
  CHECK(std::llround(static_cast<double>(model_parameter_count(model)) / 1e9) == 236);
  CHECK(std::llround(static_cast<double>(active_parameter_count(model)) / 1e9) == 21);
}

TEST_CASE("presets name their source, and small ones take bytes") {
  for (const Published& row : kPublished) CHECK(!preset_model(row.preset).source.empty());
  for (const char* name : {"gpt-nano", "gpt-micro", "gpt-mini", "llama-nano"}) {
    CHECK(preset_model(name).vocab == 256);
    CHECK(!preset_model(name).source.empty());
  }
}

TEST_CASE("a model's layers are the embedding, the transformer layers and the head") {
  const ModelSpec model = preset_model("qwen2-7b");
  const std::vector<Layer> layers = model_layers(model);
  REQUIRE(layers.size() == 30);
  CHECK(std::get<EmbeddingLayer>(layers.front()).vocab == 152064);
  CHECK(std::get<TransformerLayer>(layers[28]).qkv_bias);
  CHECK(std::get<HeadLayer>(layers.back()).hidden == 3584);
}

TEST_CASE("what a model file leaves out follows from the rest") {
  const ModelSpec model =
      parse_model(R"({"name": "m", "layers": 1, "hidden": 12, "heads": 3, "ffn": 8, "vocab": 5})", "m.json");
  CHECK(model.kv_heads == 3);
  CHECK(model.head_size == 4);
  CHECK(model.rotary_size == 4);
  CHECK(small_gpt().rotary_size == 0);  // it has learned positions
}

TEST_CASE("a model survives its JSON form") {
  for (const Published& row : kPublished) {
    const ModelSpec model = preset_model(row.preset);
    CHECK(parse_model(to_json(model).dump(), "again") == model);
  }
}

TEST_CASE("a bad model file is refused with place and remedy") {
  const std::string good = to_json(small_gpt()).dump();
  const auto with = [&](const char* key, nlohmann::json value) {
    nlohmann::json json = nlohmann::json::parse(good);
    json[key] = std::move(value);
    return json.dump();
  };
  const auto without = [&](const char* key) {
    nlohmann::json json = nlohmann::json::parse(good);
    json.erase(key);
    return json.dump();
  };
  const auto refused = [](const std::string& text, const char* part) {
    CAPTURE(text);
    check_refused<SpecError>([&] { parse_model(text, "m.json"); }, "m.json", part);
  };
  refused(with("hiden", 1), "hidden");
  for (const char* key : {"name", "layers", "hidden", "heads", "ffn", "vocab"}) refused(without(key), key);
  for (const char* key : {"layers", "hidden", "heads", "kv_heads", "head_size", "ffn", "vocab"}) {
    refused(with(key, 0), key);
    refused(with(key, -4), key);
    refused(with(key, 1.5), key);
    refused(with(key, 1e12), key);
    refused(with(key, "many"), key);
  }
  for (const char* key : {"positions", "window", "rotary_size"}) refused(with(key, -1), key);
  refused(with("norm_epsilon", 0), "norm_epsilon");
  refused(with("qkv_bias", 1), "qkv_bias");
  refused(with("norm", "batch"), "rms");
  refused(with("kv_heads", 3), "kv_heads");
  refused(with("rotary_size", 3), "rotary_size");
  refused(good.substr(0, good.size() / 2), "line 1");
  refused("[]", "object");
}

}  // namespace plumb
