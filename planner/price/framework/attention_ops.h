#pragma once
// Attention as a framework runs it: the projections around it, its core fused or not, latent (DeepSeek-AI 2024) or
// not. See framework/transformer_ops.h for the traffic.

#include "planner/price/framework/pass_builder.h"
#include "planner/price/framework/sizes.h"

namespace plumb { inline namespace planner {

/// Queries, keys and values from the norm's output, turned by RoPE.
void attention_inputs_forward(const LayerContext& context, const PassBuilder& pass);

/// What of these torchtitan's per-operation checkpoints rebuild: of the products of queries, keys and values the
/// second, and RoPE; of latent attention all.
void attention_inputs_rebuild(const LayerContext& context, const PassBuilder& pass);

/// Softmax(Q K^T) V and what context parallelism exchanges for it.
void attention_core_forward(const LayerContext& context, const PassBuilder& pass);
void attention_core_backward(const LayerContext& context, const PassBuilder& pass);

void attention_inputs_input_grad(const LayerContext& context, const PassBuilder& pass);
void attention_inputs_weight_grad(const LayerContext& context, const PassBuilder& pass);

}}  // namespace plumb::planner
