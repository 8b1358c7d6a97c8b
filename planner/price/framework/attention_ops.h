#pragma once
// Attention as a framework runs it. The projections, norms and RoPE beside its core are the steps of the layer's program
// (kernels/layer/emit/attention.cpp and latent_attention.cpp), with the framework's own traffic. The core, fused or not,
// and its exchanges are the framework's (framework/transformer_ops.h).

#include "planner/price/framework/pass_builder.h"
#include "planner/price/framework/sizes.h"

namespace plumb { inline namespace planner {

/// Adds queries, keys and values from the norm's output, turned by RoPE.
void attention_inputs_forward(const LayerContext& context, const PassBuilder& pass);

/// Adds the part of these that torchtitan's per-operation checkpoints rebuild: the second of the products of queries,
/// keys and values, norms of heads, and RoPE; or all inputs of latent attention.
void attention_inputs_rebuild(const LayerContext& context, const PassBuilder& pass);

/// Adds Softmax(Q K^T) V and the collectives of context parallelism for it.
void attention_core_forward(const LayerContext& context, const PassBuilder& pass);
void attention_core_backward(const LayerContext& context, const PassBuilder& pass);

void attention_inputs_input_grad(const LayerContext& context, const PassBuilder& pass);

/// Adds the weight gradients of all of attention's products, its output's among them.
void attention_weight_grad(const LayerContext& context, const PassBuilder& pass);

}}  // namespace plumb::planner
