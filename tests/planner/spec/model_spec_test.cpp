#include "planner/spec/model_spec.h"

#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

struct PublishedModel {
  const char* preset;
  double parameters;
  const char* source;
};

// Counts are exact where a model card has them; otherwise they are rounded like in the paper.
constexpr PublishedModel kPublishedModels[] = {
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
    {"bloom-176b", 176'247'271'424, "bigscience/bloom, model card"},
    {"nemotron-4-340b", 341.0e9, "NVIDIA 2024, arXiv 2406.11704, section 2: 9.4 B of embeddings and 331.6 B"},
    {"mixtral-8x7b", 46'702'792'704, "mistralai/Mixtral-8x7B-v0.1, model page"},
    {"mixtral-8x22b", 140'620'634'112, "mistralai/Mixtral-8x22B-v0.1, model page"},
    {"qwen2.5-7b", 7'615'616'512, "Qwen/Qwen2.5-7B, model page"},
    {"qwen2.5-72b", 72'706'203'648, "Qwen/Qwen2.5-72B, model page"},
    {"qwen3-8b", 8'190'735'360, "Qwen/Qwen3-8B, model page"},
    {"qwen3-32b", 32'762'123'264, "Qwen/Qwen3-32B, model page"},
    {"qwen3-30b-a3b", 30'532'122'624, "Qwen/Qwen3-30B-A3B, model page"},
    {"qwen3-235b-a22b", 235'093'634'560, "Qwen/Qwen3-235B-A22B, model page"},
    {"deepseek-v3", 671e9, "deepseek-ai/DeepSeek-V3, README_WEIGHTS.md, main model"},
    {"gpt-oss-120b", 116.83e9, "OpenAI 2025, gpt-oss model card, table 1"},
    {"gpt-oss-20b", 20.91e9, "OpenAI 2025, gpt-oss model card, table 1"},
    {"llama-3.2-1b", 1'235'814'400, "meta-llama/Llama-3.2-1B, model page"},
    {"llama-3.2-3b", 3'212'749'824, "meta-llama/Llama-3.2-3B, model page"},
    {"llama-3.1-8b", 8'030'261'248, "meta-llama/Llama-3.1-8B, model page"},
    {"llama-3.1-70b", 70'553'706'496, "meta-llama/Llama-3.1-70B, model page"},
    {"qwen2.5-14b", 14'770'033'664, "Qwen/Qwen2.5-14B, model page"},
    {"qwen2.5-32b", 32'763'876'352, "Qwen/Qwen2.5-32B, model page"},
    {"qwen3-0.6b", 596'049'920, "Qwen/Qwen3-0.6B, model page"},
    {"qwen3-1.7b", 1'720'574'976, "Qwen/Qwen3-1.7B, model page"},
    {"qwen3-4b", 4'022'468'096, "Qwen/Qwen3-4B, model page"},
    {"qwen3-14b", 14'768'307'200, "Qwen/Qwen3-14B, model page"},
};

/// A count of which only the leading digits are published: `parameters` is a multiple of `unit`.
struct Rounded {
  const char* preset;
  double parameters;
  double unit;
  const char* source;
};

constexpr Rounded kRounded[] = {
    {"gpt3-5b", 5e9, 1e9, "NVIDIA/NeMo, GPTConfig5B"},
    {"gpt3-20b", 20e9, 1e9, "NVIDIA/NeMo, GPTConfig20B"},
    {"deepseek-v2", 236e9, 1e9, "DeepSeek-AI 2024, arXiv 2405.04434, abstract"},
    {"llama-4-scout", 108e9, 1e9, "meta-llama/llama-models, Llama 4 model card: 109 B with 0.87 B of vision"},
    {"llama-4-maverick", 401e9, 1e9, "meta-llama/Llama-4-Maverick-17B-128E, model page: 402 B with 0.87 B of vision"},
    {"falcon-h1-34b", 33.6e9, 0.1e9, "Zuo et al. 2025, arXiv 2507.22448, the table of the models"},
    {"megatron-1.7b", 1.7e9, 0.1e9, "Narayanan et al. 2021, table 1"},
    {"megatron-3.6b", 3.6e9, 0.1e9, "Narayanan et al. 2021, table 1"},
    {"megatron-7.5b", 7.5e9, 0.1e9, "Narayanan et al. 2021, table 1"},
    {"megatron-18b", 18.4e9, 0.1e9, "Narayanan et al. 2021, table 1"},
    {"megatron-39b", 39.1e9, 0.1e9, "Narayanan et al. 2021, table 1"},
    {"megatron-76b", 76.1e9, 0.1e9, "Narayanan et al. 2021, table 1"},
    {"megatron-145b", 145.6e9, 0.1e9, "Narayanan et al. 2021, table 1"},
    {"megatron-310b", 310.1e9, 0.1e9, "Narayanan et al. 2021, table 1"},
    {"megatron-530b", 529.6e9, 0.1e9, "Narayanan et al. 2021, table 1"},
    {"megatron-1t", 1008.0e9, 0.1e9, "Narayanan et al. 2021, table 1"},
};

// These are the parameters that a token meets. Authors round or cut off, so that a count may differ by less than one
// unit of the last digit.
constexpr Rounded kActive[] = {
    {"mixtral-8x7b", 12.9e9, 0.1e9, "Mistral AI, Mixtral of experts, 2023: 12.9 of 46.7 B"},
    {"mixtral-8x22b", 39e9, 1e9, "Mistral AI, Cheaper, better, faster, stronger, 2024: 39 of 141 B"},
    {"qwen3-30b-a3b", 3.3e9, 0.1e9, "Qwen/Qwen3-30B-A3B, model card: 3.3 of 30.5 B"},
    {"qwen3-235b-a22b", 22e9, 1e9, "Qwen/Qwen3-235B-A22B, model card: 22 of 235 B"},
    {"deepseek-v2", 21e9, 1e9, "DeepSeek-AI 2024, arXiv 2405.04434, abstract"},
    {"llama-4-scout", 17e9, 1e9, "meta-llama/llama-models, Llama 4 model card"},
    {"llama-4-maverick", 17e9, 1e9, "meta-llama/llama-models, Llama 4 model card"},
    {"deepseek-v3", 37e9, 1e9, "DeepSeek-AI 2024, arXiv 2412.19437, abstract: 37 of 671 B"},
};

}  // namespace

TEST_CASE("every preset has the published number of parameters") {
  for (const PublishedModel& row : kPublishedModels) {
    CAPTURE(row.preset);
    CAPTURE(row.source);
    const auto counted = static_cast<double>(model_parameter_count(preset_model(row.preset)));
    CHECK(std::abs(counted / row.parameters - 1) < 1e-3);
  }
  CHECK(model_parameter_count(preset_model("llama-3-8b")) == 8'030'261'248);
}

TEST_CASE("a preset has the number of parameters to which its source rounds") {
  for (const Rounded& row : kRounded) {
    CAPTURE(row.preset);
    CAPTURE(row.source);
    const auto counted = static_cast<double>(model_parameter_count(preset_model(row.preset)));
    CHECK(std::llround(counted / row.unit) == std::llround(row.parameters / row.unit));
  }
}

TEST_CASE("the sizes of GPT-3 have the parameters of their shape") {
  // Narayanan et al. 2021, equation 2, with the last norm. Brown et al. round to two digits, for another vocabulary.
  for (const char* preset :
       {"gpt3-125m", "gpt3-350m", "gpt3-760m", "gpt3-1.3b", "gpt3-2.7b", "gpt3-6.7b", "gpt3-13b", "gpt3-175b"}) {
    CAPTURE(preset);
    const ModelSpec model = preset_model(preset);
    const std::int64_t l = model.layers;
    const std::int64_t h = model.hidden;
    CHECK(model_parameter_count(model) == 12 * l * h * h + 13 * l * h + (model.vocab + model.positions) * h + 2 * h);
  }
}

TEST_CASE("a token of a mixture of experts meets the published number of parameters") {
  for (const Rounded& row : kActive) {
    CAPTURE(row.preset);
    CAPTURE(row.source);
    const auto counted = static_cast<double>(active_parameter_count(preset_model(row.preset)));
    CHECK(std::abs(counted - row.parameters) < row.unit);
  }
}

TEST_CASE("Nemotron-4 15B has 12.5 billion parameters beside its embeddings") {
  // Parmar et al. 2024, section 2, count 3.2 billion for embeddings: two tables of 256000 x 6144, which are 3.1.
  const ModelSpec model = preset_model("nemotron-4-15b");
  const std::int64_t embeddings = 2 * model.vocab * model.hidden;
  CHECK(std::llround(static_cast<double>(model_parameter_count(model) - embeddings) / 1e8) == 125);
}

TEST_CASE("MPT with the positions, biases and vocabulary of its benchmarks has exactly their parameters") {
  // mosaicml/llm-foundry, scripts/train/benchmarking, prints the counts for learned positions of 2048 tokens, biases
  // and 50368 tokens; the released models have ALiBi, no biases and 50432 tokens.
  const auto benchmarked = [](const char* preset) {
    ModelSpec model = preset_model(preset);
    model.positions = 2048;
    model.qkv_bias = model.linear_bias = true;
    model.vocab = 50368;
    return model_parameter_count(model);
  };
  CHECK(benchmarked("mpt-7b") == 6'658'859'008);
  CHECK(benchmarked("mpt-30b") == 29'975'214'080);
}

TEST_CASE("norms of queries and keys are among the parameters, and what a form leaves out is as small as is known") {
  // BLOOM has a norm of 2 x 14336 behind its embedding.
  CHECK(model_parameter_count(preset_model("qwen3-8b")) == 8'190'735'360);
  CHECK(model_parameter_count(preset_model("qwen3-32b")) == 32'762'123'264);
  CHECK(model_parameter_count(preset_model("qwen3-30b-a3b")) == 30'532'122'624);
  CHECK(model_parameter_count(preset_model("qwen3-235b-a22b")) == 235'093'634'560);
  CHECK(model_parameter_count(preset_model("bloom-176b")) == 176'247'271'424 - 28'672);
  CHECK(model_parameter_count(preset_model("mixtral-8x7b")) == 46'702'792'704);
  CHECK(model_parameter_count(preset_model("mixtral-8x22b")) == 140'620'634'112);
}

TEST_CASE("Mamba-2 has the parameters of the published models, and all of them are active") {
  // mistral.ai/news/codestral-mamba gives the number; Dao & Gu 2024 round the other's to 2.7 B.
  CHECK(model_parameter_count(preset_model("mamba-codestral-7b")) == 7'285'403'648);
  CHECK(std::llround(static_cast<double>(model_parameter_count(preset_model("mamba2-2.7b"))) / 1e8) == 27);
  CHECK(active_parameter_count(preset_model("mamba-codestral-7b")) == 7'285'403'648);
}

TEST_CASE("a model of Mamba-2 has its blocks alone, and refuses what attention needs") {
  const ModelSpec model = preset_model("mamba2-nano");
  const std::vector<Layer> layers = model_layers(model);
  REQUIRE(layers.size() == 6);
  CHECK(std::get<TransformerLayer>(layers[1]).hidden == model.hidden);
  CHECK(std::get<TransformerLayer>(layers[4]).states == model.states);
  CHECK_FALSE(std::get<TransformerLayer>(layers[4]).feeds_forward());
  CHECK(parse_model(to_json(model).dump(), "again") == model);
  nlohmann::json json = nlohmann::json::parse(to_json(model).dump());
  json["heads"] = 4;
  CHECK_THROWS_WITH_AS(model_from_json(json, "m"), doctest::Contains("heads"), SpecError);
  json.erase("heads");
  json["mamba2"]["groups"] = 3;
  CHECK_THROWS_WITH_AS(model_from_json(json, "m"), doctest::Contains("3 does not divide the 8 heads"), SpecError);
  json["mamba2"].erase("groups");
  json["mamba2"].erase("state_size");
  CHECK_THROWS_WITH_AS(model_from_json(json, "m"), doctest::Contains("m, mamba2"), SpecError);
}

TEST_CASE("hybrids of attention and states have the parameters of the published models") {
  CHECK(model_parameter_count(preset_model("jamba-v0.1")) == 51'570'323'328);  // ai21labs/Jamba-v0.1, model page
  // tiiuae/Falcon-H1-34B-Base, model page.
  CHECK(model_parameter_count(preset_model("falcon-h1-34b")) == 33'642'516'224);
  // Jamba Team 2024 (2408.12570) gives 398 B and 94 B active; NVIDIA 2025 (2504.03624) 8 B, as its model page 8.1 B.
  CHECK(std::abs(static_cast<double>(model_parameter_count(preset_model("jamba-1.5-large"))) - 398e9) < 1e9);
  CHECK(std::abs(static_cast<double>(active_parameter_count(preset_model("jamba-1.5-large"))) - 94e9) < 1e9);
  CHECK(std::llround(static_cast<double>(model_parameter_count(preset_model("nemotron-h-8b"))) / 1e8) == 81);
  // Qwen/Qwen3-Next-80B-A3B-Instruct has 81,324,862,720 with its module of multi-token prediction. In each of 49 blocks
  // the gate of the shared expert is left out.
  ModelSpec qwen = preset_model("qwen3-next-80b-a3b");
  CHECK(std::llround(static_cast<double>(active_parameter_count(qwen)) / 1e9) == 4);  // 3 B besides two tables of 0.3 B
  qwen.mtp_modules = 1;
  CHECK(model_parameter_count(qwen) == 81'324'862'720 - 49 * 2048);
}

TEST_CASE("a module of multi-token prediction has the published parameters of DeepSeek-V3's") {
  // deepseek-ai/DeepSeek-V3, README_WEIGHTS.md: 11.5 B of its own besides two tables of 0.9 B, which is its block
  // without the projection, and 14 B with them; 685 B in all, scales of fp8 included.
  ModelSpec model = preset_model("deepseek-v3");
  const std::int64_t main = model_parameter_count(model);
  model.mtp_modules = 1;
  const std::int64_t module = model_parameter_count(model) - main, tables = 2 * model.vocab * model.hidden;
  const std::int64_t projection = 2 * model.hidden * model.hidden;
  CHECK(std::llround(static_cast<double>(module - projection) / 1e8) == 115);
  CHECK(std::abs(static_cast<double>(module + tables) - 14e9) < 1e9);
  CHECK(std::abs(static_cast<double>(main + module + tables) - 685e9) < 1e9);
  CHECK(parse_model(to_json(model).dump(), "again") == model);
}

TEST_CASE("a pattern says of what each layer is made, and its parts must have sizes") {
  const ModelSpec model = preset_model("hybrid-nano");
  const std::vector<Layer> layers = model_layers(model);
  REQUIRE(layers.size() == 8);
  const auto block = [&](std::size_t i) { return std::get<TransformerLayer>(layers[i]); };
  CHECK((block(1).mixes_states() && block(1).heads == 0 && !block(1).feeds_forward()));
  CHECK((!block(2).mixes_tokens() && block(2).ffn == model.ffn));
  CHECK((block(3).mixes_states() && block(3).heads == model.heads && block(3).ffn == model.ffn));
  CHECK((block(6).heads == model.heads && !block(6).mixes_states() && !block(6).feeds_forward()));
  CHECK(parse_model(to_json(model).dump(), "again") == model);
  const auto refused = [&](const char* key, const nlohmann::json& value, const char* says) {
    nlohmann::json json = nlohmann::json::parse(to_json(model).dump());
    json[key] = value;
    CHECK_THROWS_WITH_AS(model_from_json(json, "m"), doctest::Contains(says), SpecError);
  };
  refused("pattern", "M - * -", "its 4 layers do not divide the 6 layers");
  refused("pattern", "ME - *", "give their number under experts");
  refused("pattern", "- *", "no layer has the state mixer");
  refused("pattern", "M X *", "'X' is no kind of layer");
  refused("experts", 4, "experts_per_token");
  refused("mamba", {{"channels", 256}, {"state_size", 16}, {"step_rank", 8}}, "one kind of state mixer");
}

TEST_CASE("presets name their source, and small ones take bytes") {
  for (const PublishedModel& row : kPublishedModels) CHECK(!preset_model(row.preset).source.empty());
  for (const Rounded& row : kRounded) CHECK(!preset_model(row.preset).source.empty());
  for (const char* name : {"mpt-7b", "mpt-30b", "nemotron-4-15b"}) CHECK(!preset_model(name).source.empty());
  for (const char* name :
       {"gpt-nano", "gpt-micro", "gpt-mini", "llama-nano", "mixtral-nano", "deepseek-nano", "mamba2-nano"}) {
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
  for (const PublishedModel& row : kPublishedModels) {
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

TEST_CASE("of alternating layers every second sees the whole past, the others their window") {
  const std::vector<Layer> layers = model_layers(preset_model("gpt-oss-120b"));
  REQUIRE(layers.size() == 38);
  for (std::size_t index = 1; index <= 36; ++index) {
    CHECK(std::get<TransformerLayer>(layers[index]).window == (index % 2 == 0 ? 0 : 128));
  }
}

TEST_CASE("layers that see the whole past need others that do not") {
  nlohmann::json json = to_json(preset_model("gpt-oss-20b"));
  CHECK(model_from_json(json, "m") == preset_model("gpt-oss-20b"));
  json["window"] = 0;
  CHECK_THROWS_WITH_AS(model_from_json(json, "m"), doctest::Contains("full_attention_every"), SpecError);
}

TEST_CASE("gpt-oss with its sinks and the biases of its routers and experts has the parameters of its model card") {
  ModelSpec model = preset_model("gpt-oss-120b");
  model.sinks = model.router_bias = model.expert_bias = true;
  CHECK(model_parameter_count(model) == 116'829'156'672);  // OpenAI 2025, table 1: 116.83 B
  CHECK(parse_model(to_json(model).dump(), "again") == model);
}

TEST_CASE("options of routers and scores reach the layers") {
  ModelSpec model = preset_model("mixtral-nano");
  model.router = RouterKind::kSigmoid;
  model.selection_bias = true;
  model.attention_softcap = 50;
  model.logit_softcap = 30;
  CHECK(parse_model(to_json(model).dump(), "again") == model);
  const std::vector<Layer> layers = model_layers(model);
  const auto& block = std::get<TransformerLayer>(layers[1]);
  CHECK(block.router == RouterKind::kSigmoid);
  CHECK(block.selection_bias);
  CHECK(block.attention_softcap == 50);
  CHECK(std::get<HeadLayer>(layers.back()).logit_softcap == 30);
}

TEST_CASE("a token's picks come from some groups of experts") {
  nlohmann::json json = to_json(preset_model("deepseek-v3"));
  const auto block = [](const ModelSpec& model) { return std::get<TransformerLayer>(model_layers(model)[10]); };
  CHECK((block(model_from_json(json, "m")).expert_groups == 8 &&
         block(model_from_json(json, "m")).groups_per_token == 4));
  CHECK(model_from_json(json, "m") == preset_model("deepseek-v3"));
  json["groups_per_token"] = 8;  // no limit
  const ModelSpec free = model_from_json(json, "m");
  CHECK(block(free).expert_groups == 1);
  CHECK(model_from_json(to_json(free), "m") == free);
  const auto refused = [&](const char* key, int value, const char* says) {
    nlohmann::json changed = to_json(preset_model("deepseek-v3"));
    changed[key] = value;
    CHECK_THROWS_WITH_AS(model_from_json(changed, "m"), doctest::Contains(says), SpecError);
  };
  refused("expert_groups", 7, "7 groups do not divide 256 experts");
  refused("groups_per_token", 9, "come from 1 to 8 of the groups");
  refused("expert_groups", 256, "8 picks of a token come from 8 to 256 of the groups");
}

TEST_CASE("norms of queries and keys are named, and latent attention has its own") {
  nlohmann::json json = to_json(preset_model("qwen3-8b"));
  CHECK(json.at("query_key_norms") == "each_head");
  CHECK(model_from_json(json, "m") == preset_model("qwen3-8b"));
  json["query_key_norms"] = "all_heads";
  const ModelSpec model = model_from_json(json, "m");
  CHECK(std::get<TransformerLayer>(model_layers(model)[1]).query_key_norms == QueryKeyNorms::kAllHeads);
  CHECK(model_from_json(to_json(model), "m") == model);
  json["query_key_norms"] = "none";
  CHECK(model_parameter_count(model_from_json(json, "m")) == 8'190'735'360 - 36 * 256);
  json["query_key_norms"] = "each_layer";
  CHECK_THROWS_WITH_AS(model_from_json(json, "m"), doctest::Contains("each_head"), SpecError);
  json = to_json(preset_model("deepseek-v3"));
  json["query_key_norms"] = "each_head";
  CHECK_THROWS_WITH_AS(model_from_json(json, "m"), doctest::Contains("norms of its own"), SpecError);
}

}  // namespace plumb::test
