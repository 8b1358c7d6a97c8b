#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "planner/spec/huggingface/families.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns Mamba-2's mixer under the names that Falcon-H1 and Bamba have for its sizes.
Mamba2Mixer mamba_sizes(HuggingFaceConfig& config, std::int64_t inner, const Mamba2Mixer& defaults) {
  Mamba2Mixer mixer = defaults;
  mixer.heads = config.size_or("mamba_n_heads", defaults.heads);
  const bool derived = !config.has("mamba_d_head") || config.is_text("mamba_d_head");  // "auto"
  mixer.head_size = derived ? inner / mixer.heads : config.size("mamba_d_head");
  mixer.state_size = config.size_or("mamba_d_state", defaults.state_size);
  mixer.groups = config.size_or("mamba_n_groups", defaults.groups);
  mixer.taps = config.size_or("mamba_d_conv", 4);
  mixer.chunk = config.size_or("mamba_chunk_size", 256);
  mixer.linear_bias = config.flag_or("mamba_proj_bias", false);
  mixer.convolution_bias = config.flag_or("mamba_conv_bias", true);
  if (mixer.inner() != inner) {
    config.fail("mamba_n_heads", fmt::format("{} heads of {} channels are not the mixer's {} channels: correct one",
                                             mixer.heads, mixer.head_size, inner));
  }
  return mixer;
}

/// Jamba (Lieber et al. 2024): Mamba's layers with attention in one of each period, and experts in one of each. It has
/// no positions, and its experts are as wide as its MLPs.
ModelSpec jamba(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 8});
  model.rotary_size = 0;
  model.window = config.size_or("sliding_window", 0);
  model.experts = config.size_or("num_experts", 16);
  model.experts_per_token = config.size_or("num_experts_per_tok", 2);
  model.expert_ffn = model.ffn;
  model.renormalised = false;
  const bool derived = !config.has("mamba_dt_rank") || config.is_text("mamba_dt_rank");  // "auto"
  model.states = MambaMixer{.channels = config.size_or("mamba_expand", 2) * model.hidden,
                            .state_size = config.size_or("mamba_d_state", 16),
                            .step_rank = derived ? (model.hidden + 15) / 16 : config.size("mamba_dt_rank"),
                            .taps = config.size_or("mamba_d_conv", 4),
                            .linear_bias = config.flag_or("mamba_proj_bias", false),
                            .convolution_bias = config.flag_or("mamba_conv_bias", true),
                            .inner_norms = true};
  const std::int64_t attention_period = config.size_or("attn_layer_period", 8);
  const std::int64_t attention_offset = config.count_or("attn_layer_offset", 4);
  const std::int64_t expert_period = config.size_or("expert_layer_period", 2);
  const std::int64_t expert_offset = config.count_or("expert_layer_offset", 1);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const bool attends = i % attention_period == attention_offset;
    const bool has_experts = model.experts > 1 && i % expert_period == expert_offset;
    model.pattern.push_back({.attention = attends, .states = !attends, .mlp = !has_experts, .experts = has_experts});
  }
  if (model.experts == 1) model.experts = model.experts_per_token = model.expert_ffn = 0;
  return model;
}

/// Returns true for each layer that has attention, as Qwen3-Next says it: by a list, or by a period.
std::vector<bool> full_attention_layers(HuggingFaceConfig& config, std::int64_t layers) {
  const std::vector<std::string> types = config.texts("layer_types");
  const std::int64_t period = config.size_or("full_attention_interval", 4);
  if (!types.empty() && std::ssize(types) != layers)
    config.fail("layer_types", fmt::format("it names {} layers of {}: mend the file", types.size(), layers));
  std::vector<bool> attends;
  for (std::int64_t i = 0; i < layers; ++i)
    attends.push_back(types.empty() ? (i + 1) % period == 0
                                    : types[static_cast<std::size_t>(i)].find("full_attention") != std::string::npos);
  return attends;
}

/// Qwen3-Next: gated delta nets with gated attention in one layer of each period, experts in all. The gate of the shared
/// expert, a number a token, is left out.
ModelSpec qwen3_next(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 2, .head_size = 256, .rope_theta = 10000});
  config.refuse_flag("attention_bias", "biases on the attention alone");
  if (!config.is_empty("mlp_only_layers")) config.refuse("mlp_only_layers", "dense layers that are listed");
  const std::int64_t experts_every = config.size_or("decoder_sparse_step", 1);
  model.rotary_size = rotary_size_of(model.head_size, config.share_or("partial_rotary_factor", 0.25));
  model.output_gate = true;
  model.query_key_norms = QueryKeyNorms::kEachHead;
  model.experts = config.size_or("num_experts", 512);
  model.experts_per_token = config.size_or("num_experts_per_tok", 10);
  model.expert_ffn = config.size_or("moe_intermediate_size", 512);
  model.shared_ffn = config.count_or("shared_expert_intermediate_size", 512);
  model.renormalised = config.flag_or("norm_topk_prob", true);
  model.states = DeltaNetMixer{.key_heads = config.size_or("linear_num_key_heads", 16),
                               .value_heads = config.size_or("linear_num_value_heads", 32),
                               .key_size = config.size_or("linear_key_head_dim", 128),
                               .value_size = config.size_or("linear_value_head_dim", 128),
                               .taps = config.size_or("linear_conv_kernel_dim", 4)};
  std::int64_t number = 0;
  for (const bool attends : full_attention_layers(config, model.layers)) {
    const bool has_experts = ++number % experts_every == 0;
    model.pattern.push_back({.attention = attends, .states = !attends, .mlp = !has_experts, .experts = has_experts});
  }
  if (!has_part(model, &LayerParts::mlp)) model.ffn = 0;
  return model;
}

/// Falcon-H1 (Zuo et al. 2025): attention and Mamba-2 beside each other in every layer, then an MLP. Its multipliers
/// cost nothing.
ModelSpec falcon_h1(HuggingFaceConfig& config) {
  ModelSpec model = rms_model(config, {.kv_heads = 8, .norm_epsilon = 1e-5});
  config.refuse_flag("attention_bias", "biases on the attention alone");
  config.refuse_flag("mlp_bias", "biases on the MLP alone");
  config.refuse_flag("projectors_bias", "biases on the output projections alone");
  const std::int64_t inner =
      config.has("mamba_d_ssm") ? config.size("mamba_d_ssm") : config.size_or("mamba_expand", 2) * model.hidden;
  Mamba2Mixer mixer = mamba_sizes(config, inner, {.heads = 128, .state_size = 256, .groups = 1});
  mixer.gated_norm = config.flag_or("mamba_rms_norm", false);
  model.states = mixer;
  model.pattern = {{.attention = true, .states = true, .mlp = true}};
  return model;
}

/// Returns the letter of a name of the transformers library, old or new.
char nemotron_letter(const HuggingFaceConfig& config, const std::string& name) {
  constexpr std::array<std::pair<const char*, char>, 6> kLetters = {{{"mamba", 'M'},
                                                                     {"linear_attention", 'M'},
                                                                     {"attention", '*'},
                                                                     {"full_attention", '*'},
                                                                     {"mlp", '-'},
                                                                     {"moe", 'E'}}};
  for (const auto& [known, letter] : kLetters)
    if (name == known) return letter;
  config.fail("layers_block_type", fmt::format("{} is no kind of layer: mend the file", name));
}

/// Returns the layers of Nemotron-H by their letters, or by a list of names.
std::vector<LayerParts> nemotron_layers(HuggingFaceConfig& config) {
  std::string letters;
  if (config.has("hybrid_override_pattern")) {
    letters = config.text("hybrid_override_pattern");
  } else {
    for (const std::string& name : config.texts("layers_block_type")) letters += nemotron_letter(config, name);
  }
  std::string words;
  for (const char letter : letters) words += {letter, ' '};
  return layer_pattern(words, "hybrid_override_pattern");
}

/// Nemotron-H (NVIDIA 2025, 2504.03624): each layer is Mamba-2, attention, an MLP or experts alone. It has no positions.
ModelSpec nemotron_h(HuggingFaceConfig& config) {
  ModelSpec model{
      .hidden = config.size_or("hidden_size", 4096),
      .heads = config.size_or("num_attention_heads", 32),
      .kv_heads = config.size_or("num_key_value_heads", 8),
      .head_size = config.size_or(config.has("attention_head_dim") ? "attention_head_dim" : "head_dim", 128),
      .ffn = config.size_or("intermediate_size", 21504),
      .vocab = config.size_or("vocab_size", 131072),
      .sequence = config.size_or("max_position_embeddings", 0),
      .norm = NormKind::kRmsNorm,
      .norm_epsilon = config.number_or(config.has("rms_norm_eps") ? "rms_norm_eps" : "layer_norm_epsilon", 1e-5),
      .mlp = MlpKind::kGelu,
      .exact_gelu = is_exact_gelu(config, "mlp_hidden_act", "relu2"),
      .tied_embeddings = config.flag_or("tie_word_embeddings", false)};
  for (const char* bias : {"attention_bias", "mlp_bias", "use_bias"})
    config.refuse_flag(bias, "biases on one kind of layer alone");
  model.pattern = nemotron_layers(config);
  model.layers = std::ssize(model.pattern);
  if (config.size_or("num_hidden_layers", model.layers) != model.layers)
    config.fail("num_hidden_layers", fmt::format("the pattern has {} layers: mend the file", model.layers));
  if (!config.is_empty("moe_latent_size")) config.refuse("moe_latent_size", "experts in a space of their own");
  model.states = Mamba2Mixer{.heads = config.size_or("mamba_num_heads", 128),
                             .head_size = config.size_or("mamba_head_dim", 64),
                             .state_size = config.size_or("ssm_state_size", 128),
                             .groups = config.size_or("n_groups", 8),
                             .taps = config.size_or("conv_kernel", 4),
                             .chunk = config.size_or("chunk_size", 128),
                             .linear_bias = config.flag_or("mamba_proj_bias", false),
                             .convolution_bias = config.flag_or("use_conv_bias", true)};
  if (has_part(model, &LayerParts::experts)) {
    model.experts = config.size("n_routed_experts");
    model.experts_per_token = config.size("num_experts_per_tok");
    model.expert_ffn = config.size("moe_intermediate_size");
    model.shared_ffn = config.count_or("n_shared_experts", 1) *
                       config.size_or("moe_shared_expert_intermediate_size", model.expert_ffn);
    model.router = RouterKind::kSigmoid;
    model.selection_bias = true;
    read_expert_groups(config, model, 1, 1);
  }
  if (!has_part(model, &LayerParts::mlp)) model.ffn = 0;
  if (!has_part(model, &LayerParts::attention)) model.heads = model.kv_heads = model.head_size = 0;
  if (!has_part(model, &LayerParts::states)) model.states = {};
  return model;
}

constexpr std::array kHybridFamilies{HuggingFaceFamily{"jamba", jamba}, HuggingFaceFamily{"qwen3_next", qwen3_next},
                                     HuggingFaceFamily{"falcon_h1", falcon_h1},
                                     HuggingFaceFamily{"nemotron_h", nemotron_h}};

}  // namespace

std::span<const HuggingFaceFamily> hybrid_families() {
  return kHybridFamilies;
}

}}  // namespace plumb::planner
