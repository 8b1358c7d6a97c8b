#pragma once
// Layers of every kind, with every option that changes what they do, and the ways in which ranks share them.

#include <utility>
#include <variant>
#include <vector>

#include "kernels/layer.h"

namespace plumb::test {

inline TransformerLayer small_gpt_block() {
  return {.hidden = 64,
          .heads = 4,
          .kv_heads = 4,
          .head_size = 16,
          .ffn = 256,
          .norm = NormKind::kLayerNorm,
          .mlp = MlpKind::kGelu,
          .qkv_bias = true,
          .linear_bias = true};
}

inline TransformerLayer small_llama_block() {
  return {.hidden = 128, .heads = 8, .kv_heads = 2, .head_size = 16, .ffn = 352, .rotary_size = 16};
}

inline TransformerLayer small_mixture() {
  TransformerLayer layer = small_llama_block();
  layer.experts = 8;
  layer.experts_per_token = 2;
  layer.expert_ffn = 64;
  return layer;
}

/// A block of DeepSeek-V3: latent attention, a sigmoid router whose picks follow a bias, and a shared expert.
inline TransformerLayer small_latent_mixture() {
  TransformerLayer layer = small_mixture();
  layer.kv_heads = layer.heads;
  layer.head_size = 24;
  layer.rotary_size = 8;
  layer.query_rank = 48;
  layer.kv_rank = 32;
  layer.value_size = 16;
  layer.shared_ffn = 96;
  layer.router = RouterKind::kSigmoid;
  layer.selection_bias = true;
  return layer;
}

/// A block of gpt-oss: sinks, windows, and biases of the router and the experts.
inline TransformerLayer small_oss_block() {
  TransformerLayer layer = small_mixture();
  layer.sinks = layer.router_bias = layer.expert_bias = layer.qkv_bias = layer.linear_bias = true;
  layer.window = 5;
  return layer;
}

inline std::vector<TransformerLayer> all_blocks() {
  std::vector<TransformerLayer> blocks = {small_gpt_block(), small_llama_block(),    small_mixture(),
                                          small_oss_block(), small_latent_mixture(), small_latent_mixture()};
  blocks.back().query_rank = 0;
  blocks.back().experts = 0;
  TransformerLayer neox = small_gpt_block();
  neox.parallel_residual = neox.exact_gelu = true;
  neox.rotary_size = 8;
  blocks.push_back(neox);
  TransformerLayer gemma = small_llama_block();
  gemma.attention_softcap = 50;
  blocks.push_back(gemma);
  TransformerLayer normed = small_llama_block();  // Qwen3, OLMo 2, and layer norms of heads
  normed.query_key_norms = QueryKeyNorms::kEachHead;
  blocks.push_back(normed);
  normed.query_key_norms = QueryKeyNorms::kAllHeads;
  blocks.push_back(normed);
  TransformerLayer phi = small_gpt_block();
  phi.query_key_norms = QueryKeyNorms::kEachHead;
  blocks.push_back(phi);
  TransformerLayer shared = small_mixture();
  shared.shared_ffn = 96;
  shared.capacity_factor = 1.25;
  shared.balance_loss = 0.01;
  blocks.push_back(shared);
  shared.parallel_residual = true;
  blocks.push_back(shared);
  for (std::size_t i = 0, count = blocks.size(); i < count; ++i) {
    blocks.push_back(blocks[i]);
    blocks.back().dropout = 0.1;
  }
  return blocks;
}

inline TransformerLayer small_mamba2() {
  return {.hidden = 64, .states = Mamba2Mixer{.heads = 8, .head_size = 16, .state_size = 32, .groups = 4, .chunk = 8}};
}

/// Blocks of Jamba, Qwen3-Next, Falcon-H1 and Nemotron-H, and a half alone.
inline std::vector<TransformerLayer> hybrid_blocks() {
  TransformerLayer jamba = small_mixture();
  jamba.heads = jamba.kv_heads = 0;
  jamba.states = MambaMixer{.channels = 64, .state_size = 16, .step_rank = 12, .inner_norms = true};
  TransformerLayer plain_mamba = jamba;
  plain_mamba.experts = 0;
  plain_mamba.states =
      MambaMixer{.channels = 64, .state_size = 16, .step_rank = 12, .linear_bias = true, .convolution_bias = false};
  TransformerLayer delta_net = small_mixture();
  delta_net.heads = delta_net.kv_heads = 0;
  delta_net.shared_ffn = 96;
  delta_net.states = DeltaNetMixer{.key_heads = 4, .value_heads = 8, .key_size = 16, .value_size = 8, .chunk = 8};
  TransformerLayer gated = small_llama_block();
  gated.output_gate = true;
  gated.query_key_norms = QueryKeyNorms::kEachHead;
  TransformerLayer beside = small_llama_block();
  beside.states = Mamba2Mixer{.heads = 8, .head_size = 16, .state_size = 32, .groups = 4, .chunk = 8};
  TransformerLayer beside_without_norm = beside;
  std::get<Mamba2Mixer>(beside_without_norm.states).gated_norm = false;
  TransformerLayer mlp_alone = small_gpt_block(), attention_alone = small_llama_block();
  mlp_alone.heads = mlp_alone.kv_heads = 0;
  attention_alone.ffn = 0;
  return {jamba, plain_mamba, delta_net, gated, beside, beside_without_norm, mlp_alone, attention_alone};
}

inline std::vector<Layer> all_other_kinds() {
  std::vector<Layer> layers = {
      small_mamba2(),
      EmbeddingLayer{.vocab = 100, .hidden = 64},
      EmbeddingLayer{.vocab = 100, .hidden = 64, .positions = 32, .dropout = 0.1},
      HeadLayer{.vocab = 100, .hidden = 64},
      HeadLayer{.vocab = 100, .hidden = 64, .norm = NormKind::kLayerNorm, .logit_softcap = 30},
      InputLayer{.height = 9, .width = 7, .channels = 2},
      MlpLayer{.hidden = 32, .ffn = 128},
      LossLayer{.width = 10, .loss = LossKind::kSquaredError},
      LossLayer{.width = 10, .loss = LossKind::kCrossEntropy},
  };
  for (const bool flag : {true, false}) {
    layers.push_back(ConvolutionLayer{.height = 9,
                                      .width = 7,
                                      .channels = 2,
                                      .filters = 6,
                                      .kernel = 3,
                                      .stride = 2,
                                      .padding = 1,
                                      .groups = 2,
                                      .relu = flag,
                                      .input_grad = !flag});
    layers.push_back(PoolingLayer{.height = 9,
                                  .width = 7,
                                  .channels = 6,
                                  .kernel = 3,
                                  .stride = 2,
                                  .pooling = flag ? PoolingKind::kMax : PoolingKind::kAverage});
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu})
      layers.push_back(LinearLayer{
          .in = 40, .out = 24, .bias = flag, .activation = activation, .dropout = flag ? 0.1 : 0, .input_grad = flag});
  }
  return layers;
}

inline std::vector<LayerWork> all_divisions() {
  return {{.microbatch = 2, .sequence = 16},
          {.microbatch = 2, .sequence = 16, .tensor_parallel = 4, .experts = {.tensor = 4}},
          {.microbatch = 2, .sequence = 16, .tensor_parallel = 2, .sequence_parallel = true, .experts = {.tensor = 2}},
          {.microbatch = 2, .sequence = 16, .context_parallel = 2, .experts = {.parallel = 2}},
          {.microbatch = 2, .sequence = 16, .context_parallel = 2, .exchanges_heads = true},
          {.microbatch = 2,
           .sequence = 16,
           .tensor_parallel = 2,
           .sequence_parallel = true,
           .experts = {.parallel = 4, .tensor = 1}}};
}

/// Calls visit(layer, work) for every kind and division.
template <class Visit>
void for_each_layer(Visit visit) {
  for (const TransformerLayer& block : all_blocks())
    for (const LayerWork& work : all_divisions()) visit(Layer(block), work);
  for (const TransformerLayer& block : hybrid_blocks())
    for (const LayerWork& work : all_divisions()) visit(Layer(block), work);
  for (const Layer& layer : all_other_kinds()) {
    const bool has_tokens =
        std::holds_alternative<EmbeddingLayer>(layer) || std::holds_alternative<HeadLayer>(layer) || is_block(layer);
    if (!has_tokens) visit(layer, LayerWork{.microbatch = 3});
    if (has_tokens)
      for (const LayerWork& work : all_divisions()) visit(layer, work);
  }
}

/// Returns the programs of a layer: a host's, a device's, and the device's with joined steps.
inline std::vector<LayerProgram> all_programs(const Layer& layer, const LayerWork& work) {
  return {layer_program(layer, work), layer_program(layer, work, Machine::kDevice), fused_program(layer, work, false)};
}

}  // namespace plumb::test
