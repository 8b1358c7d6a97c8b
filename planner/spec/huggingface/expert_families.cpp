#include <array>
#include <string>

#include "planner/spec/huggingface/families.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the period of Qwen's layers of experts, the last of which has them.
std::int64_t sparse_step(HuggingFaceConfig& config) {
  if (!config.is_empty("mlp_only_layers")) config.refuse("mlp_only_layers", "dense layers that are listed");
  return config.size_or("decoder_sparse_step", 1);
}

ModelSpec mixtral(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 8, .norm_epsilon = 1e-5, .rope_theta = 1e6});
  model.window = config.size_or("sliding_window", 0);
  model.experts = config.size_or("num_local_experts", 8);
  model.experts_per_token = config.size_or("num_experts_per_tok", 2);
  model.expert_ffn = model.ffn;
  return model;
}

/// Phi-3.5-MoE has layer norms; the biases of the attention's output and of the head are left out.
ModelSpec phimoe(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.norm_epsilon = 1e-5, .rope_theta = 1e6});
  model.norm = NormKind::kLayerNorm;
  model.qkv_bias = config.flag_or("attention_bias", false);
  config.has("lm_head_bias");
  model.window = config.size_or("sliding_window", 0);
  model.experts = config.size_or("num_local_experts", 16);
  model.experts_per_token = config.size_or("num_experts_per_tok", 2);
  model.expert_ffn = model.ffn;
  return model;
}

/// Llama 4: three layers of four see the past of their chunk, priced as a window of that length, which is the same for
/// sequences that are no longer. Maverick has experts in every second layer, and MLPs of intermediate_size_mlp between.
/// The shared expert is as large as the others. The norms of queries and keys have no parameters and are left out, and
/// all layers are priced with RoPE, which the fourth layers do without.
ModelSpec llama4(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 8, .head_size = 128, .norm_epsilon = 1e-5, .rope_theta = 500000});
  config.refuse_flag("attention_bias", "biases on the attention alone");
  model.experts_every = config.size_or("interleave_moe_layer_step", 1);
  model.window = config.size_or("attention_chunk_size", 8192);
  model.full_attention_every = config.size_or("no_rope_layer_interval", 4);
  model.experts = config.size_or("num_local_experts", 16);
  model.experts_per_token = config.size_or("num_experts_per_tok", 1);
  model.expert_ffn = model.ffn;
  model.shared_ffn = model.ffn;
  if (model.experts_every > 1) model.ffn = config.size_or("intermediate_size_mlp", 16384);
  config.has("intermediate_size_mlp");
  std::vector<std::int64_t> with_experts, with_rope;
  for (std::int64_t index = 0; index < model.layers; ++index) {
    if ((index + 1) % model.experts_every == 0) with_experts.push_back(index);
    with_rope.push_back((index + 1) % model.full_attention_every != 0 ? 1 : 0);
  }
  if (!config.is_empty_or("moe_layers", with_experts))
    config.refuse("moe_layers", "experts in other layers than the last of each period");
  if (!config.is_empty_or("no_rope_layers", with_rope))
    config.refuse("no_rope_layers", "chunks in other layers than all but the last of each period");
  model.router = RouterKind::kSigmoid;
  model.renormalised = false;
  return model;
}

/// Granite's multipliers of embeddings, residuals and logits cost nothing.
ModelSpec granitemoe(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config);
  config.refuse_flag("attention_bias", "biases on the attention alone");
  model.experts = config.size_or("num_local_experts", 8);
  model.experts_per_token = config.size_or("num_experts_per_tok", 2);
  model.expert_ffn = model.ffn;
  return model;
}

ModelSpec olmoe(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.norm_epsilon = 1e-5});
  config.refuse_flag("attention_bias", "biases on the attention alone");
  model.query_key_norms = QueryKeyNorms::kAllHeads;
  model.experts = config.size_or("num_experts", 64);
  model.experts_per_token = config.size_or("num_experts_per_tok", 8);
  model.expert_ffn = model.ffn;
  model.renormalised = config.flag_or("norm_topk_prob", false);
  return model;
}

/// The gate of Qwen2-MoE's shared expert, a number a token, is left out.
ModelSpec qwen2_moe(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 16});
  model.experts_every = sparse_step(config);
  model.qkv_bias = config.flag_or("qkv_bias", true);
  model.window = optional_window(config);
  model.experts = config.size_or("num_experts", 60);
  model.experts_per_token = config.size_or("num_experts_per_tok", 4);
  model.expert_ffn = config.size_or("moe_intermediate_size", 1408);
  model.shared_ffn = config.count_or("shared_expert_intermediate_size", 5632);
  model.renormalised = config.flag_or("norm_topk_prob", false);
  return model;
}

ModelSpec qwen3_moe(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 4});
  config.refuse_flag("attention_bias", "biases on the attention alone");
  model.query_key_norms = QueryKeyNorms::kEachHead;
  model.experts_every = sparse_step(config);
  model.window = optional_window(config);
  model.experts = config.size_or("num_experts", 128);
  model.experts_per_token = config.size_or("num_experts_per_tok", 8);
  model.expert_ffn = config.size_or("moe_intermediate_size", 768);
  model.renormalised = config.flag_or("norm_topk_prob", false);
  return model;
}

/// In gpt-oss every second layer sees a window only, as its class lays them out. The heads' sinks, a number each, and
/// the biases of experts and routers are left out.
ModelSpec gpt_oss(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 8, .head_size = 64, .norm_epsilon = 1e-5, .rope_theta = 150000});
  model.qkv_bias = model.linear_bias = config.flag_or("attention_bias", true);
  model.window = config.size_or("sliding_window", 128);
  model.full_attention_every = 2;
  model.experts = config.size_or("num_local_experts", 128);
  model.experts_per_token = config.size_or("num_experts_per_tok", 4);
  model.expert_ffn = model.ffn;
  return model;
}

/// GLM-4.5: its routers' bias is left out.
ModelSpec glm4_moe(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 8, .norm_epsilon = 1e-5});
  model.qkv_bias = config.flag_or("attention_bias", false);
  if (config.flag_or("use_qk_norm", false)) model.query_key_norms = QueryKeyNorms::kEachHead;
  model.rotary_size = rotary_size_of(model.head_size, config.share_or("partial_rotary_factor", 0.5));
  model.experts = config.size_or("n_routed_experts", 128);
  model.experts_per_token = config.size_or("num_experts_per_tok", 8);
  model.expert_ffn = config.size_or("moe_intermediate_size", 1408);
  model.shared_ffn = config.count_or("n_shared_experts", 1) * model.expert_ffn;
  model.dense_layers = config.count_or("first_k_dense_replace", 1);
  model.renormalised = config.flag_or("norm_topk_prob", true);
  read_expert_groups(config, model, 1, 1);
  return model;
}

/// The sizes that DeepSeek-V2 and V3 have in common: latent attention, experts behind dense layers.
ModelSpec deepseek(HuggingFaceConfig& config, std::int64_t experts, std::int64_t experts_per_token,
                   std::int64_t expert_ffn, std::int64_t shared_experts, std::int64_t dense_layers) {
  ModelSpec model = rms_sizes(config, {});
  config.refuse_flag("attention_bias", "biases on the attention alone");
  if (config.size_or("moe_layer_freq", 1) != 1) {
    config.refuse("moe_layer_freq", "dense layers between those of experts");
  }
  model.rotary_size = config.size_or("qk_rope_head_dim", 64);
  model.head_size = config.size_or("qk_nope_head_dim", 128) + model.rotary_size;
  config.has("head_dim");  // the size of the turned channels, where a file has it
  model.query_rank = config.is_null("q_lora_rank") ? 0 : config.size_or("q_lora_rank", 1536);
  config.has("q_lora_rank");
  model.kv_rank = config.size_or("kv_lora_rank", 512);
  model.value_size = config.size_or("v_head_dim", 128);
  const auto size = [&](const char* key, std::int64_t fallback) {
    return fallback > 0 ? config.size_or(key, fallback) : config.size(key);
  };
  model.experts = size("n_routed_experts", experts);
  model.experts_per_token = size("num_experts_per_tok", experts_per_token);
  model.expert_ffn = config.size_or("moe_intermediate_size", expert_ffn);
  model.shared_ffn = config.count_or("n_shared_experts", shared_experts) * model.expert_ffn;
  model.dense_layers = config.count_or("first_k_dense_replace", dense_layers);
  return model;
}

/// DeepSeek-V2's class has no default for the number of experts.
ModelSpec deepseek_v2(HuggingFaceConfig& config) {
  ModelSpec model = deepseek(config, 0, 0, 1407, 0, 0);
  read_expert_groups(config, model, 1, 1);
  model.renormalised = config.flag_or("norm_topk_prob", false);
  return model;
}

/// DeepSeek-V3's multi-token prediction module is left out.
ModelSpec deepseek_v3(HuggingFaceConfig& config) {
  ModelSpec model = deepseek(config, 256, 8, 2048, 1, 3);
  read_expert_groups(config, model, 8, 4);
  model.router = RouterKind::kSigmoid;
  model.selection_bias = true;
  model.renormalised = config.flag_or("norm_topk_prob", true);
  return model;
}

/// DBRX has gated experts, and layer norms without biases, which are counted here with biases.
ModelSpec dbrx(HuggingFaceConfig& config) {
  StrictObject attention = config.object("attn_config");
  StrictObject mlp = config.object("ffn_config");
  ModelSpec model{.layers = config.size("n_layers"),
                  .hidden = config.size("d_model"),
                  .heads = config.size("n_heads"),
                  .ffn = mlp.positive_integer("ffn_hidden_size"),
                  .vocab = config.size("vocab_size"),
                  .sequence = config.size_or("max_seq_len", 0),
                  .norm = NormKind::kLayerNorm,
                  .mlp = MlpKind::kSwiglu,
                  .experts = mlp.positive_integer("moe_num_experts"),
                  .experts_per_token = mlp.positive_integer("moe_top_k")};
  model.kv_heads = attention.has("kv_n_heads") ? attention.positive_integer("kv_n_heads") : 1;
  model.rope_theta = attention.has("rope_theta") ? attention.positive_number("rope_theta") : 10000;
  model.head_size = head_size_of(config, model, 0);
  model.rotary_size = model.head_size;
  model.expert_ffn = model.ffn;
  config.refuse_flag("tie_word_embeddings", "tables that this family ties");
  return model;
}

constexpr std::array kExpertFamilies{HuggingFaceFamily{"mixtral", mixtral},
                                     HuggingFaceFamily{"phimoe", phimoe},
                                     HuggingFaceFamily{"llama4_text", llama4},
                                     HuggingFaceFamily{"qwen2_moe", qwen2_moe},
                                     HuggingFaceFamily{"qwen3_moe", qwen3_moe},
                                     HuggingFaceFamily{"deepseek_v2", deepseek_v2},
                                     HuggingFaceFamily{"deepseek_v3", deepseek_v3},
                                     HuggingFaceFamily{"dbrx", dbrx},
                                     HuggingFaceFamily{"olmoe", olmoe},
                                     HuggingFaceFamily{"granitemoe", granitemoe},
                                     HuggingFaceFamily{"gpt_oss", gpt_oss},
                                     HuggingFaceFamily{"glm4_moe", glm4_moe}};

}  // namespace

std::span<const HuggingFaceFamily> expert_families() {
  return kExpertFamilies;
}

}}  // namespace plumb::planner
