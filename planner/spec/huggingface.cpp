#include "planner/spec/huggingface.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/strict_json.h"

namespace plumb {
namespace {

/// The file's object, and which of its keys were asked for.
class Config {
 public:
  Config(const nlohmann::json& json, const std::string& file) : json_(json), object_(json, file) {}

  /// null counts as absent.
  bool has(const std::string& key) {
    used_.insert(key);
    return object_.has(key);
  }
  std::int64_t size(const std::string& key) {
    constexpr std::int64_t kLargestSize = 1 << 24;
    const std::int64_t value = used(key).positive_integer(key);
    if (value > kLargestSize) fail(key, fmt::format("{} is out of range: give at most {}", value, kLargestSize));
    return value;
  }
  std::int64_t size_or(const std::string& key, std::int64_t fallback) { return has(key) ? size(key) : fallback; }
  /// As size_or, and may be 0.
  std::int64_t count_or(const std::string& key, std::int64_t fallback) {
    if (!has(key)) return fallback;
    return object_.non_negative_integer(key) == 0 ? 0 : size(key);
  }
  double number_or(const std::string& key, double fallback) {
    return has(key) ? object_.positive_number(key) : fallback;
  }
  bool flag_or(const std::string& key, bool fallback) { return has(key) ? object_.boolean(key) : fallback; }
  std::string text(const std::string& key) { return used(key).text(key); }
  std::string text_or(const std::string& key, const std::string& fallback) { return has(key) ? text(key) : fallback; }
  /// Absent, null or [].
  bool is_empty(const std::string& key) {
    used_.insert(key);
    return !json_.contains(key) || json_.at(key).is_null() || (json_.at(key).is_array() && json_.at(key).empty());
  }
  bool is_null(const std::string& key) const { return json_.contains(key) && json_.at(key).is_null(); }
  StrictObject object(const std::string& key) { return used(key).object(key); }

  [[noreturn]] void fail(const std::string& key, const std::string& message) const { object_.fail(key, message); }

  std::vector<std::string> ignored_keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json_.items()) {
      if (!used_.contains(key)) keys.push_back(key);
    }
    std::ranges::sort(keys);
    return keys;
  }

 private:
  StrictObject& used(const std::string& key) {
    used_.insert(key);
    return object_;
  }

  const nlohmann::json& json_;
  StrictObject object_;
  std::set<std::string> used_;
};

/// What the transformers library takes where a file is silent; 0: what follows from the other sizes.
struct Defaults {
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  double norm_epsilon = 1e-6;
  double rope_theta = 10000;
};

std::int64_t head_size(Config& config, std::int64_t hidden, std::int64_t heads, std::int64_t fallback) {
  if (config.has("head_dim")) return config.size("head_dim");
  if (fallback > 0) return fallback;
  if (hidden % heads != 0) {
    config.fail("num_attention_heads",
                fmt::format("{} heads do not divide a hidden size of {}: add head_dim", heads, hidden));
  }
  return hidden / heads;
}

double rope_theta(Config& config, const std::string& key, double fallback) {
  if (config.has("rope_parameters")) {  // where newer files keep it
    StrictObject rope = config.object("rope_parameters");
    if (rope.has("rope_theta")) return rope.positive_number("rope_theta");
  }
  return config.number_or(key, fallback);
}

/// What the names of sizes that all families but gpt2 share say; the head size is still to be set.
ModelSpec sizes(Config& config, const Defaults& defaults) {
  ModelSpec model{.layers = config.size("num_hidden_layers"),
                  .hidden = config.size("hidden_size"),
                  .heads = config.size("num_attention_heads"),
                  .ffn = config.size("intermediate_size"),
                  .vocab = config.size("vocab_size")};
  model.kv_heads = config.size_or("num_key_value_heads", defaults.kv_heads > 0 ? defaults.kv_heads : model.heads);
  if (model.heads % model.kv_heads != 0) {
    config.fail("num_key_value_heads",
                fmt::format("{} does not divide the {} attention heads: mend the file", model.kv_heads, model.heads));
  }
  model.sequence = config.size_or("max_position_embeddings", 0);
  return model;
}

/// RMS norms and SwiGLU; the head size and what is turned of it are still to be set.
ModelSpec rms_sizes(Config& config, const Defaults& defaults) {
  ModelSpec model = sizes(config, defaults);
  const std::string activation = config.text_or("hidden_act", "silu");
  if (activation != "silu") {
    config.fail("hidden_act", fmt::format("{} is not priced: this family's MLP is priced with silu", activation));
  }
  model.norm = NormKind::kRmsNorm;
  model.norm_epsilon = config.number_or("rms_norm_eps", defaults.norm_epsilon);
  model.mlp = MlpKind::kSwiglu;
  model.rope_theta = rope_theta(config, "rope_theta", defaults.rope_theta);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", false);
  return model;
}

ModelSpec rms_family(Config& config, const Defaults& defaults = {}) {
  ModelSpec model = rms_sizes(config, defaults);
  model.head_size = head_size(config, model.hidden, model.heads, defaults.head_size);
  model.rotary_size = model.head_size;
  return model;
}

void refuse_attention_bias(Config& config) {
  if (config.flag_or("attention_bias", false)) {
    config.fail("attention_bias", "biases on the attention alone are not priced: set it to false");
  }
}

ModelSpec llama(Config& config) {
  ModelSpec model = rms_family(config);
  const bool attention_bias = config.flag_or("attention_bias", false);
  if (attention_bias != config.flag_or("mlp_bias", false)) {
    config.fail("attention_bias", "biases on the attention or the MLP alone are not priced: set mlp_bias alike");
  }
  model.qkv_bias = model.linear_bias = attention_bias;
  return model;
}

ModelSpec mistral(Config& config) {
  ModelSpec model = rms_family(config);
  constexpr std::int64_t kDefaultWindow = 4096;
  const bool no_window = config.is_null("sliding_window");
  model.window = no_window ? 0 : config.size_or("sliding_window", kDefaultWindow);
  config.has("sliding_window");
  return model;
}

/// Qwen's window, which is used only where a flag says so.
std::int64_t optional_window(Config& config) {
  const bool windowed = config.flag_or("use_sliding_window", false);
  const std::int64_t window = config.size_or("sliding_window", 4096);
  return windowed ? window : 0;
}

ModelSpec qwen2(Config& config) {
  ModelSpec model = rms_family(config);
  model.qkv_bias = true;
  model.window = optional_window(config);
  return model;
}

ModelSpec mixtral(Config& config) {
  ModelSpec model = rms_family(config, {.kv_heads = 8, .norm_epsilon = 1e-5, .rope_theta = 1e6});
  model.window = config.size_or("sliding_window", 0);
  model.experts = config.size_or("num_local_experts", 8);
  model.experts_per_token = config.size_or("num_experts_per_tok", 2);
  model.expert_ffn = model.ffn;
  return model;
}

ModelSpec qwen3_of(Config& config, const Defaults& defaults) {
  ModelSpec model = rms_family(config, defaults);
  refuse_attention_bias(config);
  model.window = optional_window(config);
  return model;
}

ModelSpec qwen3(Config& config) {
  return qwen3_of(config, {.kv_heads = 32, .head_size = 128});
}

ModelSpec qwen3_moe(Config& config) {
  ModelSpec model = qwen3_of(config, {.kv_heads = 4});
  if (config.size_or("decoder_sparse_step", 1) != 1) {
    config.fail("decoder_sparse_step", "only mixtures in every layer are priced: set it to 1");
  }
  if (!config.is_empty("mlp_only_layers")) {
    config.fail("mlp_only_layers", "only mixtures in every layer are priced: set it to []");
  }
  model.experts = config.size_or("num_experts", 128);
  model.experts_per_token = config.size_or("num_experts_per_tok", 8);
  model.expert_ffn = config.size_or("moe_intermediate_size", 768);
  model.renormalised = config.flag_or("norm_topk_prob", false);
  return model;
}

ModelSpec deepseek_v3(Config& config) {
  ModelSpec model = rms_sizes(config, {});
  refuse_attention_bias(config);
  if (config.size_or("moe_layer_freq", 1) != 1) {
    config.fail("moe_layer_freq", "only mixtures in every layer behind the dense ones are priced: set it to 1");
  }
  model.rotary_size = config.size_or("qk_rope_head_dim", 64);
  model.head_size = config.size_or("qk_nope_head_dim", 128) + model.rotary_size;
  config.has("head_dim");  // that of the turned channels, where a file has it
  model.query_rank = config.is_null("q_lora_rank") ? 0 : config.size_or("q_lora_rank", 1536);
  config.has("q_lora_rank");
  model.kv_rank = config.size_or("kv_lora_rank", 512);
  model.value_size = config.size_or("v_head_dim", 128);
  model.experts = config.size_or("n_routed_experts", 256);
  model.experts_per_token = config.size_or("num_experts_per_tok", 8);
  model.expert_ffn = config.size_or("moe_intermediate_size", 2048);
  model.shared_ffn = config.count_or("n_shared_experts", 1) * model.expert_ffn;
  model.dense_layers = config.count_or("first_k_dense_replace", 3);
  model.renormalised = config.flag_or("norm_topk_prob", true);
  return model;
}

/// The tanh approximation or the exact form.
bool is_exact_gelu(Config& config, const std::string& key, const std::string& fallback) {
  const std::string activation = config.text_or(key, fallback);
  if (activation == "gelu") return true;
  if (activation == "gelu_new" || activation == "gelu_fast" || activation == "gelu_pytorch_tanh") return false;
  config.fail(key, fmt::format("{} is not priced: this family's MLP is priced with gelu or gelu_new", activation));
}

ModelSpec gpt2(Config& config) {
  ModelSpec model{.layers = config.size("n_layer"),
                  .hidden = config.size("n_embd"),
                  .heads = config.size("n_head"),
                  .vocab = config.size("vocab_size"),
                  .sequence = config.size("n_positions"),
                  .positions = config.size("n_positions"),
                  .norm = NormKind::kLayerNorm,
                  .mlp = MlpKind::kGelu,
                  .qkv_bias = true,
                  .linear_bias = true};
  if (model.hidden % model.heads != 0) {
    config.fail("n_head", fmt::format("{} heads do not divide n_embd {}: mend the file", model.heads, model.hidden));
  }
  model.kv_heads = model.heads;
  model.head_size = model.hidden / model.heads;
  model.ffn = config.size_or("n_inner", 4 * model.hidden);
  model.norm_epsilon = config.number_or("layer_norm_epsilon", 1e-5);
  model.exact_gelu = is_exact_gelu(config, "activation_function", "gelu_new");
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  return model;
}

ModelSpec gpt_neox(Config& config) {
  const Defaults defaults;
  ModelSpec model = sizes(config, defaults);
  model.head_size = head_size(config, model.hidden, model.heads, defaults.head_size);
  model.norm = NormKind::kLayerNorm;
  model.norm_epsilon = config.number_or("layer_norm_eps", 1e-5);
  model.mlp = MlpKind::kGelu;
  model.exact_gelu = is_exact_gelu(config, "hidden_act", "gelu");
  model.qkv_bias = model.linear_bias = true;
  if (!config.flag_or("attention_bias", true)) {
    config.fail("attention_bias", "an MLP with biases beside an attention without is not priced: set it to true");
  }
  model.parallel_residual = config.flag_or("use_parallel_residual", true);
  const double share = config.number_or("rotary_pct", 0.25);
  if (share > 1)
    config.fail("rotary_pct", fmt::format("{} is out of range: give a share above 0 and at most 1", share));
  model.rotary_size = std::llround(std::floor(static_cast<double>(model.head_size) * share)) / 2 * 2;
  model.rope_theta = rope_theta(config, "rotary_emb_base", defaults.rope_theta);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", false);
  return model;
}

struct Family {
  std::string_view model_type;
  ModelSpec (*read)(Config&);
};
constexpr Family kFamilies[] = {
    {"llama", llama},      {"mistral", mistral},     {"mixtral", mixtral},         {"qwen2", qwen2},
    {"qwen3", qwen3},      {"qwen3_moe", qwen3_moe}, {"deepseek_v3", deepseek_v3}, {"gpt2", gpt2},
    {"gpt_neox", gpt_neox}};

}  // namespace

ImportedModel model_from_huggingface(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  Config config(json, file);
  const std::string type = config.text("model_type");
  const auto family = std::ranges::find(kFamilies, type, &Family::model_type);
  if (family == std::end(kFamilies)) {
    std::vector<std::string_view> known;
    for (const Family& candidate : kFamilies) known.push_back(candidate.model_type);
    config.fail("model_type",
                fmt::format("\"{}\" is not supported: use a {} model, or write its sizes as a Plumb model file", type,
                            fmt::join(known, ", ")));
  }
  ImportedModel imported{.model = family->read(config)};
  imported.model.name = config.text_or("_name_or_path", file);
  if (imported.model.name.empty()) imported.model.name = file;
  imported.model.source = fmt::format("Hugging Face configuration {}, model_type {}", file, type);
  imported.model = model_from_json(to_json(imported.model), file);  // for the rules that every model obeys
  imported.ignored_keys = config.ignored_keys();
  return imported;
}

}  // namespace plumb
