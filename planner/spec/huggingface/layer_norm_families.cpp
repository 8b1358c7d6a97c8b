#include <array>

#include <fmt/format.h>

#include "planner/spec/huggingface/families.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns a model with layer norms and a plain MLP with GELU; heads and biases are still to be set.
ModelSpec gelu_model(ModelSpec model, double norm_epsilon) {
  model.norm = NormKind::kLayerNorm;
  model.norm_epsilon = norm_epsilon;
  model.mlp = MlpKind::kGelu;
  return model;
}

void set_biases(ModelSpec& model, bool biases) {
  model.qkv_bias = model.linear_bias = biases;
}

/// Reads the sizes by GPT-2's names.
ModelSpec gpt2_sizes(HuggingFaceConfig& config) {
  ModelSpec model = gelu_model({.layers = config.size("n_layer"),
                                .hidden = config.size("n_embd"),
                                .heads = config.size("n_head"),
                                .vocab = config.size("vocab_size"),
                                .sequence = config.size("n_positions"),
                                .positions = config.size("n_positions")},
                               config.number_or("layer_norm_epsilon", 1e-5));
  if (model.hidden % model.heads != 0) {
    config.fail("n_head", fmt::format("{} heads do not divide n_embd {}: mend the file", model.heads, model.hidden));
  }
  set_biases(model, true);
  model.kv_heads = model.heads;
  model.head_size = model.hidden / model.heads;
  model.ffn = config.size_or("n_inner", 4 * model.hidden);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  return model;
}

ModelSpec gpt2(HuggingFaceConfig& config) {
  ModelSpec model = gpt2_sizes(config);
  model.exact_gelu = is_exact_gelu(config, "activation_function", "gelu_new");
  return model;
}

ModelSpec gpt_bigcode(HuggingFaceConfig& config) {
  ModelSpec model = gpt2_sizes(config);
  model.exact_gelu = is_exact_gelu(config, "activation_function", "gelu_pytorch_tanh");
  if (config.flag_or("multi_query", true)) model.kv_heads = 1;
  return model;
}

ModelSpec gpt_neox(HuggingFaceConfig& config) {
  ModelSpec model = gelu_model(shared_sizes(config, {}), config.number_or("layer_norm_eps", 1e-5));
  model.head_size = head_size_of(config, model, 0);
  model.exact_gelu = is_exact_gelu(config, "hidden_act", "gelu");
  set_biases(model, true);
  if (!config.flag_or("attention_bias", true)) {
    config.refuse("attention_bias", "biases on the MLP alone");
  }
  model.parallel_residual = config.flag_or("use_parallel_residual", true);
  model.rotary_size = rotary_size_of(model.head_size, config.share_or("rotary_pct", 0.25));
  model.rope_theta = rope_theta_of(config, "rotary_emb_base", 10000);
  return model;
}

/// BLOOM has ALiBi in the place of positions; the norm behind its embedding is left out.
ModelSpec bloom(HuggingFaceConfig& config) {
  ModelSpec model = gelu_model({.layers = config.size_of({"n_layer", "num_hidden_layers"}),
                                .hidden = config.size_of({"hidden_size", "n_embed"}),
                                .heads = config.size_of({"n_head", "num_attention_heads"}),
                                .vocab = config.size("vocab_size"),
                                .sequence = config.size_or("seq_length", 0)},
                               config.number_or("layer_norm_epsilon", 1e-5));
  model.kv_heads = model.heads;
  model.head_size = head_size_of(config, model, 0);
  model.ffn = config.size_or("n_inner", 4 * model.hidden);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  set_biases(model, true);
  return model;
}

/// OPT's ReLU costs what GELU does; its table of positions has two rows that no token uses.
ModelSpec opt(HuggingFaceConfig& config) {
  ModelSpec model = gelu_model({.layers = config.size("num_hidden_layers"),
                                .hidden = config.size("hidden_size"),
                                .heads = config.size("num_attention_heads"),
                                .ffn = config.size("ffn_dim"),
                                .vocab = config.size("vocab_size"),
                                .sequence = config.size("max_position_embeddings")},
                               1e-5);
  if (config.size_or("word_embed_proj_dim", model.hidden) != model.hidden) {
    config.refuse("word_embed_proj_dim", "tables narrower than the model");
  }
  is_exact_gelu(config, "activation_function", "relu");
  model.positions = model.sequence + 2;
  model.kv_heads = model.heads;
  model.head_size = head_size_of(config, model, 0);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  set_biases(model, config.flag_or("enable_bias", true));
  return model;
}

/// A Falcon layer whose attention and MLP share their norm is counted with two norms.
ModelSpec falcon(HuggingFaceConfig& config) {
  ModelSpec model = gelu_model({.layers = config.size_of({"num_hidden_layers", "n_layer"}),
                                .hidden = config.size("hidden_size"),
                                .heads = config.size_of({"num_attention_heads", "n_head"}),
                                .vocab = config.size("vocab_size"),
                                .sequence = config.size_or("max_position_embeddings", 2048)},
                               config.number_or("layer_norm_epsilon", 1e-5));
  model.head_size = head_size_of(config, model, 0);
  model.ffn = config.size_or("ffn_hidden_size", 4 * model.hidden);
  const bool one_key = config.flag_or("multi_query", true) && !config.flag_or("new_decoder_architecture", false);
  model.kv_heads = one_key ? 1
                   : config.has("num_kv_heads") || config.has("n_head_kv")
                       ? config.size_of({"num_kv_heads", "n_head_kv"})
                       : model.heads;
  model.exact_gelu = is_exact_gelu(config, "activation", "gelu");
  set_biases(model, config.flag_or("bias", false));
  model.parallel_residual = config.flag_or("parallel_attn", true) || config.flag_or("new_decoder_architecture", false);
  model.rotary_size = config.flag_or("alibi", false) ? 0 : model.head_size;
  model.rope_theta = rope_theta_of(config, "rope_theta", 10000);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  return model;
}

/// MPT's norms have no biases, but are counted here with biases; ALiBi costs nothing.
ModelSpec mpt(HuggingFaceConfig& config) {
  ModelSpec model = gelu_model({.layers = config.size("n_layers"),
                                .hidden = config.size("d_model"),
                                .heads = config.size("n_heads"),
                                .vocab = config.size("vocab_size"),
                                .sequence = config.size_or("max_seq_len", 2048)},
                               config.number_or("layer_norm_epsilon", 1e-5));
  model.kv_heads = model.heads;
  bool alibi = true;
  if (config.has("attn_config")) {
    StrictObject attention = config.object("attn_config");
    if (attention.has("alibi")) alibi = attention.boolean("alibi");
    if (attention.has("attn_type") && attention.text("attn_type") == "multiquery_attention") model.kv_heads = 1;
    if (attention.has("kv_n_heads")) model.kv_heads = attention.positive_integer("kv_n_heads");
  }
  if (!alibi && config.flag_or("learned_pos_emb", true)) model.positions = model.sequence;
  model.head_size = head_size_of(config, model, 0);
  model.ffn = config.size_or("expansion_ratio", 4) * model.hidden;
  model.exact_gelu = true;
  set_biases(model, !config.flag_or("no_bias", true));
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  return model;
}

ModelSpec starcoder2(HuggingFaceConfig& config) {
  ModelSpec model =
      gelu_model(shared_sizes(config, {.kv_heads = 2, .tied = true}), config.number_or("norm_epsilon", 1e-5));
  model.head_size = head_size_of(config, model, 0);
  model.rotary_size = model.head_size;
  model.rope_theta = rope_theta_of(config, "rope_theta", 10000);
  model.exact_gelu = is_exact_gelu(config, "hidden_act", "gelu_pytorch_tanh");
  set_biases(model, config.flag_or("use_bias", true));
  model.window = config.size_or("sliding_window", 0);
  return model;
}

/// Nemotron's squared ReLU costs what GELU does.
ModelSpec nemotron(HuggingFaceConfig& config) {
  ModelSpec model = gelu_model(shared_sizes(config, {}), config.number_or("norm_eps", 1e-5));
  is_exact_gelu(config, "hidden_act", "relu2");
  model.head_size = head_size_of(config, model, 0);
  model.rotary_size = rotary_size_of(model.head_size, config.share_or("partial_rotary_factor", 0.5));
  model.rope_theta = rope_theta_of(config, "rope_theta", 10000);
  const bool attention_bias = config.flag_or("attention_bias", false);
  if (attention_bias != config.flag_or("mlp_bias", false)) {
    config.refuse("attention_bias", "biases on the attention or the MLP alone");
  }
  set_biases(model, attention_bias);
  return model;
}

/// Phi 1 and 2: attention and MLP share a norm (counted here as two); the head's bias is left out.
ModelSpec phi(HuggingFaceConfig& config) {
  ModelSpec model = gelu_model(shared_sizes(config, {}), config.number_or("layer_norm_eps", 1e-5));
  if (config.flag_or("qk_layernorm", false)) model.query_key_norms = QueryKeyNorms::kEachHead;
  model.head_size = head_size_of(config, model, 0);
  model.exact_gelu = is_exact_gelu(config, "hidden_act", "gelu_new");
  set_biases(model, true);
  model.parallel_residual = true;
  model.rotary_size = rotary_size_of(model.head_size, config.share_or("partial_rotary_factor", 0.5));
  model.rope_theta = rope_theta_of(config, "rope_theta", 10000);
  return model;
}

/// Returns a model with layer norms and SwiGLU.
ModelSpec gated_model(HuggingFaceConfig& config, const HuggingFaceDefaults& defaults) {
  ModelSpec model = rms_model(config, defaults);
  model.norm = NormKind::kLayerNorm;
  return model;
}

/// StableLM may norm queries and keys, with gains for each head and without biases. They are counted here as one head's,
/// with biases.
ModelSpec stablelm(HuggingFaceConfig& config) {
  ModelSpec model = gated_model(config, {});
  model.norm_epsilon = config.number_or("layer_norm_eps", 1e-5);
  model.qkv_bias = config.flag_or("use_qkv_bias", false);
  if (config.flag_or("qk_layernorm", false)) model.query_key_norms = QueryKeyNorms::kEachHead;
  model.parallel_residual = config.flag_or("use_parallel_residual", false);
  model.rotary_size = rotary_size_of(model.head_size, config.share_or("partial_rotary_factor", 0.25));
  return model;
}

/// In Cohere's models attention and MLP share a norm without bias, counted here as two norms with bias. Command R+'s norms
/// of queries and keys have gains for each head, which are counted as one head's, with biases.
ModelSpec cohere(HuggingFaceConfig& config) {
  ModelSpec model = gated_model(config, {.rope_theta = 500000, .tied = true});
  model.norm_epsilon = config.number_or("layer_norm_eps", 1e-5);
  config.refuse_flag("attention_bias", "biases on the attention alone");
  if (config.flag_or("use_qk_norm", false)) model.query_key_norms = QueryKeyNorms::kEachHead;
  model.parallel_residual = true;
  return model;
}

/// The last of four layers sees the whole past.
ModelSpec cohere2(HuggingFaceConfig& config) {
  ModelSpec model = cohere(config);
  model.window = config.size_or("sliding_window", 4096);
  model.full_attention_every = config.has("_sliding_window_pattern") ? config.size("_sliding_window_pattern")
                                                                     : config.size_or("sliding_window_pattern", 4);
  config.has("layer_types");
  return model;
}

/// OLMo's norms have no parameters, but are counted here with them.
ModelSpec olmo(HuggingFaceConfig& config) {
  ModelSpec model = gated_model(config, {});
  model.norm_epsilon = 1e-5;
  config.refuse_flag("attention_bias", "biases on the attention alone");
  return model;
}

constexpr std::array kLayerNormFamilies{
    HuggingFaceFamily{"gpt2", gpt2},         HuggingFaceFamily{"gpt_bigcode", gpt_bigcode},
    HuggingFaceFamily{"gpt_neox", gpt_neox}, HuggingFaceFamily{"bloom", bloom},
    HuggingFaceFamily{"opt", opt},           HuggingFaceFamily{"falcon", falcon},
    HuggingFaceFamily{"mpt", mpt},           HuggingFaceFamily{"starcoder2", starcoder2},
    HuggingFaceFamily{"nemotron", nemotron}, HuggingFaceFamily{"stablelm", stablelm},
    HuggingFaceFamily{"cohere", cohere},     HuggingFaceFamily{"cohere2", cohere2},
    HuggingFaceFamily{"phi", phi},           HuggingFaceFamily{"olmo", olmo}};

}  // namespace

std::span<const HuggingFaceFamily> layer_norm_families() {
  return kLayerNormFamilies;
}

}}  // namespace plumb::planner
