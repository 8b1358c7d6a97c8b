#include "planner/spec/model_spec.h"

#include <algorithm>

namespace plumb { inline namespace planner {
namespace {

LayerParts parts_of(const ModelSpec& model, std::int64_t index) {
  if (!model.pattern.empty()) return model.pattern[static_cast<std::size_t>(index % std::ssize(model.pattern))];
  if (model.states.index() > 0) return {.states = true};
  const bool experts = model.experts > 0 && index >= model.dense_layers && (index + 1) % model.experts_every == 0;
  return {.attention = true, .mlp = !experts, .experts = experts};
}

void set_attention(const ModelSpec& model, std::int64_t index, TransformerLayer& layer) {
  layer.heads = model.heads;
  layer.kv_heads = model.kv_heads;
  layer.head_size = model.head_size;
  layer.qkv_bias = model.qkv_bias;
  layer.rotary_size = model.rotary_size;
  layer.rope_theta = model.rope_theta;
  const bool sees_all = model.full_attention_every > 0 && (index + 1) % model.full_attention_every == 0;
  layer.window = sees_all ? 0 : model.window;
  layer.query_rank = model.query_rank;
  layer.kv_rank = model.kv_rank;
  layer.value_size = model.value_size;
  layer.sinks = model.sinks;
  layer.attention_softcap = model.attention_softcap;
  layer.output_gate = model.output_gate;
  layer.query_key_norms = model.query_key_norms;
}

void set_experts(const ModelSpec& model, TransformerLayer& layer) {
  layer.experts = model.experts;
  layer.experts_per_token = model.experts_per_token;
  layer.expert_groups = model.expert_groups;
  layer.groups_per_token = model.groups_per_token;
  layer.expert_ffn = model.expert_ffn;
  layer.shared_ffn = model.shared_ffn;
  layer.renormalised = model.renormalised;
  layer.capacity_factor = model.capacity_factor;
  layer.balance_loss = model.balance_loss;
  layer.router = model.router;
  layer.router_bias = model.router_bias;
  layer.selection_bias = model.selection_bias;
  layer.expert_bias = model.expert_bias;
}

Layer block_of(const ModelSpec& model, std::int64_t index) {
  const LayerParts parts = parts_of(model, index);
  TransformerLayer layer{.hidden = model.hidden,
                         .norm = model.norm,
                         .mlp = model.mlp,
                         .exact_gelu = model.exact_gelu,
                         .linear_bias = model.linear_bias,
                         .parallel_residual = model.parallel_residual,
                         .norm_epsilon = model.norm_epsilon,
                         .dropout = model.dropout};
  if (parts.attention) set_attention(model, index, layer);
  if (parts.states) layer.states = model.states;
  if (parts.mlp || (parts.experts && model.pattern.empty())) layer.ffn = model.ffn;
  if (parts.experts) set_experts(model, layer);
  return layer;
}

HeadLayer head_of(const ModelSpec& model, std::int64_t rows) {
  return {.vocab = rows,
          .padding = rows - model.vocab,
          .hidden = model.hidden,
          .norm = model.norm,
          .norm_epsilon = model.norm_epsilon,
          .tied = model.tied_embeddings,
          .logit_softcap = model.logit_softcap};
}

}  // namespace

std::vector<Layer> model_layers(const ModelSpec& model, std::int64_t vocab_multiple) {
  if (model.graph) return runnable_layers(graph_nodes(*model.graph));
  std::vector<Layer> layers;
  layers.reserve(static_cast<std::size_t>(model.layers) + 2);
  const std::int64_t rows = (model.vocab + vocab_multiple - 1) / vocab_multiple * vocab_multiple;
  layers.emplace_back(
      EmbeddingLayer{.vocab = rows, .hidden = model.hidden, .positions = model.positions, .dropout = model.dropout});
  for (std::int64_t index = 0; index < model.layers; ++index) layers.emplace_back(block_of(model, index));
  layers.emplace_back(head_of(model, rows));
  return layers;
}

std::vector<LayerParts> layer_parts(const ModelSpec& model) {
  std::vector<LayerParts> parts;
  if (model.graph) return parts;
  for (std::int64_t index = 0; index < model.layers; ++index) parts.push_back(parts_of(model, index));
  return parts;
}

bool has_part(const ModelSpec& model, bool LayerParts::*part) {
  if (model.graph) return false;
  if (!model.pattern.empty()) return std::ranges::any_of(model.pattern, part);
  const bool states = model.states.index() > 0;
  const bool mlp = model.experts == 0 || model.dense_layers > 0 || model.experts_every > 1;
  const LayerParts any{.attention = !states, .states = states, .mlp = !states && mlp, .experts = model.experts > 0};
  return any.*part;
}

bool has_sequence(const ModelSpec& model) {
  return !model.graph || model.graph->sizes.contains("sequence");
}

std::int64_t model_parameter_count(const ModelSpec& model) {
  if (model.graph) return parameter_count(graph_nodes(*model.graph));
  std::int64_t count = model.tied_embeddings ? -model.vocab * model.hidden : 0;
  for (const Layer& layer : model_layers(model)) count += parameter_count(layer);
  if (model.mtp_modules == 0) return count;
  return count + model.mtp_modules * (mtp_frame_parameters(model) + parameter_count(block_of(model, model.layers - 1)));
}

std::int64_t mtp_frame_parameters(const ModelSpec& model) {
  const std::int64_t norm = model.norm == NormKind::kLayerNorm ? 2 * model.hidden : model.hidden;
  return 2 * model.hidden * model.hidden + 3 * norm;
}

std::int64_t active_parameter_count(const ModelSpec& model) {
  std::int64_t count = model_parameter_count(model);
  if (model.experts == 0) return count;
  const auto idle = [&](const Layer& layer) {
    const std::int64_t routed = expert_parameter_count(layer);
    return routed - routed / model.experts * model.experts_per_token;
  };
  for (const Layer& layer : model_layers(model)) count -= idle(layer);
  if (model.mtp_modules > 0) count -= model.mtp_modules * idle(block_of(model, model.layers - 1));
  return count;
}

}}  // namespace plumb::planner
