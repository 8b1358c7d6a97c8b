#pragma once
// The MLP of a layer, or its mixture of experts, as a framework runs it (framework/transformer_ops.h). Experts are
// assumed to be evenly loaded.

#include "planner/price/framework/pass_builder.h"
#include "planner/price/framework/sizes.h"

namespace plumb { inline namespace planner {

/// Adds the forward of the block. `without_down`: a dense block ends with its activation (StackSpec::early_stop).
void mlp_forward(const LayerContext& context, const PassBuilder& pass, bool without_down = false);
/// Adds the part that torchtitan's per-operation checkpoints rebuild: the second of a gated block's two up projections,
/// and the activation; also the routing and permutation of experts.
void mlp_rebuild(const LayerContext& context, const PassBuilder& pass);
/// Adds only the activation of routed experts.
void expert_activation(const LayerContext& context, const PassBuilder& pass);
void mlp_input_grad(const LayerContext& context, const PassBuilder& pass);
void mlp_weight_grad(const LayerContext& context, const PassBuilder& pass);

}}  // namespace plumb::planner
