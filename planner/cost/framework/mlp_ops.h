#pragma once
// The MLP of a layer, or its mixture of experts, as a framework runs it (framework/transformer_ops.h). Experts are
// taken to be evenly loaded.

#include "planner/cost/framework/attention_ops.h"

namespace plumb {

void mlp_forward(const AttentionContext& context, const PassBuilder& pass, bool without_down = false);
void mlp_input_grad(const AttentionContext& context, const PassBuilder& pass);
void mlp_weight_grad(const AttentionContext& context, const PassBuilder& pass);

}  // namespace plumb
