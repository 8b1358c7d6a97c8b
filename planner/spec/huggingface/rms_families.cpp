#include <array>

#include "planner/spec/huggingface/families.h"

namespace plumb { inline namespace planner {
namespace {

ModelSpec llama_like(HuggingFaceConfig& config, const HuggingFaceDefaults& defaults) {
  ModelSpec model = rms_model(config, defaults);
  const bool attention_bias = config.flag_or("attention_bias", false);
  if (attention_bias != config.flag_or("mlp_bias", false)) {
    config.refuse("attention_bias", "biases on the attention or the MLP alone");
  }
  model.qkv_bias = model.linear_bias = attention_bias;
  return model;
}

ModelSpec llama(HuggingFaceConfig& config) {
  return llama_like(config, {});
}

/// Granite's multipliers of embeddings, residuals and logits cost nothing.
ModelSpec granite(HuggingFaceConfig& config) {
  return llama_like(config, {});
}

ModelSpec mistral(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config);
  constexpr std::int64_t kDefaultWindow = 4096;
  const bool no_window = config.is_null("sliding_window");
  model.window = no_window ? 0 : config.size_or("sliding_window", kDefaultWindow);
  config.has("sliding_window");
  return model;
}

ModelSpec qwen2(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config);
  model.qkv_bias = true;
  model.window = optional_window(config);
  return model;
}

ModelSpec qwen3(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 32, .head_size = 128});
  config.refuse_flag("attention_bias", "biases on the attention alone");
  model.query_key_norms = QueryKeyNorms::kEachHead;
  model.window = optional_window(config);
  return model;
}

/// Phi-3 has one product for queries, keys and values, and one for both halves of the gate; all models are priced so.
ModelSpec phi3(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.norm_epsilon = 1e-5});
  model.rotary_size = rotary_size_of(model.head_size, config.share_or("partial_rotary_factor", 1));
  model.window = config.size_or("sliding_window", 0);
  return model;
}

/// Gemma's gate of GELU costs what one of SiLU does.
ModelSpec gemma(HuggingFaceConfig& config) {
  ModelSpec model = shared_sizes(config, {.kv_heads = 16, .tied = true});
  is_exact_gelu(config, config.has("hidden_activation") ? "hidden_activation" : "hidden_act", "gelu_pytorch_tanh");
  config.refuse_flag("attention_bias", "biases on the attention alone");
  model.norm = NormKind::kRmsNorm;
  model.norm_epsilon = config.number_or("rms_norm_eps", 1e-6);
  model.mlp = MlpKind::kSwiglu;
  model.rope_theta = rope_theta_of(config, "rope_theta", 10000);
  model.head_size = head_size_of(config, model, 256);
  model.rotary_size = model.head_size;
  return model;
}

/// Gemma 2: every second layer sees the whole past. The two norms behind attention and MLP and the caps on scores and
/// logits are left out.
ModelSpec gemma2(HuggingFaceConfig& config) {
  ModelSpec model = gemma(config);
  model.window = config.size_or("sliding_window", 4096);
  model.full_attention_every = 2;
  config.has("layer_types");
  return model;
}

/// Gemma 3: the last of six layers sees the whole past. The two norms behind attention and MLP are left out. Files of the
/// larger models leave out the values that are defaults of the class.
ModelSpec gemma3(HuggingFaceConfig& config) {
  ModelSpec model = gemma(config);
  model.window = config.size_or("sliding_window", 4096);
  model.full_attention_every = config.has("_sliding_window_pattern") ? config.size("_sliding_window_pattern")
                                                                     : config.size_or("sliding_window_pattern", 6);
  model.rope_theta = rope_theta_of(config, "rope_theta", 1e6);
  model.query_key_norms = QueryKeyNorms::kEachHead;
  config.has("layer_types");
  return model;
}

/// OLMo 2's norms stand behind attention and MLP, as many as elsewhere.
ModelSpec olmo2(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.norm_epsilon = 1e-5});
  config.refuse_flag("attention_bias", "biases on the attention alone");
  model.query_key_norms = QueryKeyNorms::kAllHeads;
  return model;
}

constexpr std::array kRmsNormFamilies{HuggingFaceFamily{"llama", llama},   HuggingFaceFamily{"mistral", mistral},
                                      HuggingFaceFamily{"qwen2", qwen2},   HuggingFaceFamily{"qwen3", qwen3},
                                      HuggingFaceFamily{"phi3", phi3},     HuggingFaceFamily{"gemma", gemma},
                                      HuggingFaceFamily{"gemma2", gemma2}, HuggingFaceFamily{"gemma3_text", gemma3},
                                      HuggingFaceFamily{"olmo2", olmo2},   HuggingFaceFamily{"granite", granite}};

}  // namespace

std::span<const HuggingFaceFamily> rms_families() {
  return kRmsNormFamilies;
}

}}  // namespace plumb::planner
