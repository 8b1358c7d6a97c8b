#include "planner/spec/huggingface/config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"

namespace plumb { inline namespace planner {

bool HuggingFaceConfig::has(const std::string& key) {
  return used(key).has(key);
}

bool HuggingFaceConfig::is_null(const std::string& key) const {
  return json_.contains(key) && json_.at(key).is_null();
}

bool HuggingFaceConfig::is_empty(const std::string& key) {
  used(key);
  return !json_.contains(key) || json_.at(key).is_null() || (json_.at(key).is_array() && json_.at(key).empty());
}

bool HuggingFaceConfig::is_empty_or(const std::string& key, const std::vector<std::int64_t>& numbers) {
  return is_empty(key) || json_.at(key) == nlohmann::json(numbers);
}

std::int64_t HuggingFaceConfig::size(const std::string& key) {
  constexpr std::int64_t kLargestSize = 1 << 24;
  const std::int64_t value = used(key).positive_integer(key);
  if (value > kLargestSize) fail(key, fmt::format("{} is out of range: give at most {}", value, kLargestSize));
  return value;
}

std::int64_t HuggingFaceConfig::size_of(std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (has(key)) return size(key);
  }
  return size(*keys.begin());
}

std::int64_t HuggingFaceConfig::size_or(const std::string& key, std::int64_t fallback) {
  return has(key) ? size(key) : fallback;
}

std::int64_t HuggingFaceConfig::count_or(const std::string& key, std::int64_t fallback) {
  if (!has(key)) return fallback;
  return object_.non_negative_integer(key) == 0 ? 0 : size(key);
}

double HuggingFaceConfig::number_or(const std::string& key, double fallback) {
  return has(key) ? object_.positive_number(key) : fallback;
}

double HuggingFaceConfig::share_or(const std::string& key, double fallback) {
  const double share = number_or(key, fallback);
  if (share > 1) fail(key, fmt::format("{} is out of range: give a share above 0 and at most 1", share));
  return share;
}

double HuggingFaceConfig::rate_or(const std::string& key, double fallback) {
  if (!has(key)) return fallback;
  const double rate = object_.non_negative_number(key);
  if (rate >= 1) fail(key, fmt::format("{} is out of range: give a rate of 0 or more, below 1", rate));
  return rate;
}

bool HuggingFaceConfig::flag_or(const std::string& key, bool fallback) {
  return has(key) ? object_.boolean(key) : fallback;
}

std::string HuggingFaceConfig::text(const std::string& key) {
  return used(key).text(key);
}

std::string HuggingFaceConfig::text_or(const std::string& key, const std::string& fallback) {
  return has(key) ? text(key) : fallback;
}

StrictObject HuggingFaceConfig::object(const std::string& key) {
  return used(key).object(key);
}

void HuggingFaceConfig::refuse_flag(const std::string& key, std::string_view what) {
  if (flag_or(key, false)) refuse(key, what);
}

void HuggingFaceConfig::refuse(const std::string& key, std::string_view what) const {
  fail(key,
       fmt::format("{} are not modelled, and without them it would be another model: this one cannot be priced", what));
}

std::vector<std::string> HuggingFaceConfig::ignored_keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_.items()) {
    if (!used_.contains(key)) keys.push_back(key);
  }
  std::ranges::sort(keys);
  return keys;
}

bool HuggingFaceConfig::is_text(const std::string& key) const {
  return json_.contains(key) && json_.at(key).is_string();
}

std::vector<std::string> HuggingFaceConfig::texts(const std::string& key) {
  std::vector<std::string> values;
  if (!has(key)) return values;
  const nlohmann::json& list = json_.at(key);
  const auto is_text = [](const nlohmann::json& value) { return value.is_string(); };
  if (!list.is_array() || !std::ranges::all_of(list, is_text)) fail(key, "this is no list of texts: mend the file");
  for (const nlohmann::json& value : list) values.push_back(value.get<std::string>());
  return values;
}

StrictObject& HuggingFaceConfig::used(const std::string& key) {
  used_.insert(key);
  return object_;
}

ModelSpec shared_sizes(HuggingFaceConfig& config, const HuggingFaceDefaults& defaults) {
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
  model.tied_embeddings = config.flag_or("tie_word_embeddings", defaults.tied);
  return model;
}

std::int64_t head_size_of(HuggingFaceConfig& config, const ModelSpec& model, std::int64_t fallback) {
  if (config.has("head_dim")) return config.size("head_dim");
  if (fallback > 0) return fallback;
  if (model.hidden % model.heads != 0) {
    config.fail("num_attention_heads",
                fmt::format("{} heads do not divide a hidden size of {}: add head_dim", model.heads, model.hidden));
  }
  return model.hidden / model.heads;
}

std::int64_t rotary_size_of(std::int64_t head_size, double share) {
  return std::llround(std::floor(static_cast<double>(head_size) * share)) / 2 * 2;
}

double rope_theta_of(HuggingFaceConfig& config, const std::string& key, double fallback) {
  if (config.has("rope_parameters")) {
    StrictObject rope = config.object("rope_parameters");
    if (rope.has("rope_theta")) return rope.positive_number("rope_theta");
  }
  return config.number_or(key, fallback);
}

ModelSpec rms_sizes(HuggingFaceConfig& config, const HuggingFaceDefaults& defaults) {
  ModelSpec model = shared_sizes(config, defaults);
  const std::string activation = config.text_or("hidden_act", "silu");
  if (activation != "silu") {
    config.fail("hidden_act", fmt::format("{} is not priced: this family's MLP is priced with silu", activation));
  }
  model.norm = NormKind::kRmsNorm;
  model.norm_epsilon = config.number_or("rms_norm_eps", defaults.norm_epsilon);
  model.mlp = MlpKind::kSwiglu;
  model.rope_theta = rope_theta_of(config, "rope_theta", defaults.rope_theta);
  return model;
}

ModelSpec rms_model(HuggingFaceConfig& config, const HuggingFaceDefaults& defaults) {
  ModelSpec model = rms_sizes(config, defaults);
  model.head_size = head_size_of(config, model, defaults.head_size);
  model.rotary_size = model.head_size;
  return model;
}

bool is_exact_gelu(HuggingFaceConfig& config, const std::string& key, const std::string& fallback) {
  constexpr std::array kAlike{"gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "relu2"};
  const std::string activation = config.text_or(key, fallback);
  if (activation == "gelu") return true;
  if (std::ranges::find(kAlike, activation) != kAlike.end()) return false;
  config.fail(key,
              fmt::format("{} is not priced: this family's MLP is priced with gelu, gelu_new or relu", activation));
}

std::int64_t optional_window(HuggingFaceConfig& config) {
  const bool windowed = config.flag_or("use_sliding_window", false);
  const std::int64_t window = config.size_or("sliding_window", 4096);
  return windowed ? window : 0;
}

void read_expert_groups(HuggingFaceConfig& config, ModelSpec& model, std::int64_t groups, std::int64_t picked) {
  model.expert_groups = config.size_or("n_group", groups);
  model.groups_per_token = config.size_or("topk_group", picked);
}

}}  // namespace plumb::planner
