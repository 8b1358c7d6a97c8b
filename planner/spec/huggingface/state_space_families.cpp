#include <array>

#include <fmt/format.h>

#include "planner/spec/huggingface/families.h"

namespace plumb { inline namespace planner {
namespace {

/// Mamba-2. Its gated norm is priced and runs by groups of heads, as in Dao & Gu 2024, section 8.1; the transformers
/// library norms all channels together.
ModelSpec mamba2(HuggingFaceConfig& config) {
  ModelSpec model{.layers = config.size_or("num_hidden_layers", 64),
                  .hidden = config.size_or("hidden_size", 4096),
                  .vocab = config.size_or("vocab_size", 32768),
                  .norm_epsilon = config.number_or("layer_norm_epsilon", 1e-5),
                  .tied_embeddings = config.flag_or("tie_word_embeddings", false)};
  Mamba2Mixer block{.heads = config.size_or("num_heads", 128),
                    .head_size = config.size_or("head_dim", 64),
                    .state_size = config.size_or("state_size", 128),
                    .groups = config.size_or("n_groups", 8),
                    .taps = config.size_or("conv_kernel", 4),
                    .chunk = config.size_or("chunk_size", 256),
                    .linear_bias = config.flag_or("use_bias", false),
                    .convolution_bias = config.flag_or("use_conv_bias", true)};
  const std::int64_t inner = config.size_or("expand", 2) * model.hidden;
  if (block.inner() != inner) {
    config.fail("num_heads",
                fmt::format("{} heads of {} channels are not the {} channels that expand times hidden_size "
                            "gives: correct one of the four",
                            block.heads, block.head_size, inner));
  }
  if (config.text_or("hidden_act", "silu") != "silu") config.refuse("hidden_act", "an activation other than SiLU");
  if (!config.flag_or("rms_norm", true)) config.refuse("rms_norm", "a mixer without its norm");
  model.states = block;
  return model;
}

constexpr std::array kStateSpaceFamilies{HuggingFaceFamily{"mamba2", mamba2}};

}  // namespace

std::span<const HuggingFaceFamily> state_space_families() {
  return kStateSpaceFamilies;
}

}}  // namespace plumb::planner
