#pragma once
// Attention as a framework runs it: the projections around it, and its core, fused or not, latent (DeepSeek-AI 2024) or
// not. The traffic is in framework/transformer_ops.h.

#include "planner/price/framework/pass_builder.h"
#include "planner/price/framework/sizes.h"

namespace plumb { inline namespace planner {

/// Adds queries, keys and values from the norm's output, turned by RoPE.
void attention_inputs_forward(const LayerContext& context, const PassBuilder& pass);

/// Adds the part of these that torchtitan's per-operation checkpoints rebuild: the second of the products of queries,
/// keys and values, and RoPE; or all inputs of latent attention.
void attention_inputs_rebuild(const LayerContext& context, const PassBuilder& pass);

/// Adds Softmax(Q K^T) V and the collectives of context parallelism for it.
void attention_core_forward(const LayerContext& context, const PassBuilder& pass);
void attention_core_backward(const LayerContext& context, const PassBuilder& pass);

void attention_inputs_input_grad(const LayerContext& context, const PassBuilder& pass);
void attention_inputs_weight_grad(const LayerContext& context, const PassBuilder& pass);

}}  // namespace plumb::planner
