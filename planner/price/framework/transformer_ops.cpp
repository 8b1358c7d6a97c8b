#include "planner/price/framework/transformer_ops.h"

#include "planner/price/framework/attention_ops.h"
#include "planner/price/framework/mlp_ops.h"
#include "planner/price/framework/norm_traffic.h"
#include "planner/price/framework/tensor_exchange.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the bytes of a residual stream.
double stream_bytes(const LayerContext& c) {
  return c.sizes.stream * c.bytes.activation;
}
double gathered_bytes(const LayerContext& c) {
  return c.sizes.stream * c.bytes.gathered;
}
double residual_bytes(const LayerContext& c) {
  return c.sizes.residual * c.bytes.activation;
}

/// Adds the end of one branch: bias, dropout and residual.
void branch_end_forward(const LayerContext& c, const PassBuilder& pass) {
  const double es = residual_bytes(c);
  if (c.stack.fused_bias_dropout || (c.layer.dropout == 0 && !c.layer.linear_bias)) {
    pass.traffic("bias, dropout, residual", (c.layer.dropout > 0 ? 3.5 : 3) * es);
    return;
  }
  if (c.layer.linear_bias) pass.traffic("bias", 2 * es);
  if (c.layer.dropout > 0) pass.traffic("dropout", 2.5 * es);
  pass.traffic("residual", 3 * es);
}

void branch_end_input_grad(const LayerContext& c, const PassBuilder& pass) {
  const double es = residual_bytes(c);
  if (c.layer.dropout > 0) pass.traffic("dropout", 2.5 * es);
  if (c.layer.linear_bias) pass.traffic("bias gradient", es);
}

void norm_forward(const LayerContext& c, const PassBuilder& pass) {
  pass.traffic("norm", norm_forward_crossings(c.stack) * residual_bytes(c));
}

void norm_input_grad(const LayerContext& c, const PassBuilder& pass) {
  if (c.stack.fused_norm) {  // the sum is neither written apart nor read again
    pass.traffic("norm, residual", 6 * residual_bytes(c));
    return;
  }
  pass.traffic("norm", norm_backward_crossings(c.stack) * residual_bytes(c));
  pass.traffic("residual", 3 * residual_bytes(c));
}

/// Adds the collectives of `branches` that begin, of which `ends` are summed.
void exchange_branches(const LayerContext& c, const PassBuilder& pass, int branches, int ends) {
  exchange_tensor(pass, c.work, c.stack, {.summed = stream_bytes(c), .gathered = gathered_bytes(c)}, branches, ends);
}

/// Adds the cast of a gathered input. Under fp8 every rank quantizes the whole of what the tensor group gathers in 16
/// bit; otherwise a norm has quantized it.
void cast_gathered(const LayerContext& c, const PassBuilder& pass) {
  const bool gathered = c.work.tensor_parallel > 1 && c.work.sequence_parallel && c.bytes.gathered > 1;
  if (gathered) pass.cast(c.sizes.stream);
}

/// Returns the branches that use the tensor group: attention, and what feeds forward unless undivided experts exchange
/// their tokens themselves.
int tensor_branches(const LayerContext& c) {
  const bool exchanges_tokens =
      c.layer.experts > 0 && c.layer.shared_ffn == 0 && c.work.sequence_parallel && c.work.experts.tensor == 1;
  return (c.layer.heads > 0 ? 1 : 0) + (c.layer.feeds_forward() && !exchanges_tokens ? 1 : 0);
}

/// Adds the product behind attention, whose result a gate may multiply first.
void projection_forward(const LayerContext& c, const PassBuilder& pass) {
  pass.traffic("gate", 3 * c.sizes.gate * c.sizes.tokens * c.bytes.activation);
  pass.cast(c.sizes.tokens * c.sizes.value);
  pass.gemm("projection", c.sizes.tokens, static_cast<double>(c.layer.hidden), c.sizes.value);
}

void attention_forward(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.heads == 0) return;
  norm_forward(c, pass);
  cast_gathered(c, pass);
  attention_inputs_forward(c, pass);
  attention_core_forward(c, pass);
  projection_forward(c, pass);
  branch_end_forward(c, pass);
}

void feed_forward(const LayerContext& c, const PassBuilder& pass, bool early_stop) {
  if (!c.layer.feeds_forward()) return;
  norm_forward(c, pass);
  if (c.layer.experts == 0) cast_gathered(c, pass);
  mlp_forward(c, pass, early_stop);
  if (!early_stop) branch_end_forward(c, pass);
}

void forward(const LayerContext& c, const PassBuilder& pass, bool early_stop) {
  attention_forward(c, pass);
  feed_forward(c, pass, early_stop);
  const bool unfinished = early_stop && c.layer.feeds_forward() && c.layer.experts == 0;
  exchange_branches(c, pass, tensor_branches(c), tensor_branches(c) - (unfinished ? 1 : 0));
}

/// Rebuilds all but the results of every second product (in the order queries, keys, values, projection, gate, up,
/// down), of attention's core and of the tensor group's reductions, up to the last tensor that the backward needs.
void rebuild_alternate_products(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.heads > 0) {
    norm_forward(c, pass);
    cast_gathered(c, pass);
    attention_inputs_rebuild(c, pass);
    projection_forward(c, pass);
    branch_end_forward(c, pass);
  }
  if (c.layer.feeds_forward()) {
    norm_forward(c, pass);
    if (c.layer.experts == 0) cast_gathered(c, pass);
    mlp_rebuild(c, pass);
  }
  exchange_branches(c, pass, tensor_branches(c), 0);
}

void rebuild_norms_and_activations(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.heads > 0) norm_forward(c, pass);
  if (!c.layer.feeds_forward()) return;
  norm_forward(c, pass);
  expert_activation(c, pass);
}

void attention_input_grad(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.heads == 0) return;
  const auto h = static_cast<double>(c.layer.hidden);
  branch_end_input_grad(c, pass);
  pass.cast(c.sizes.tokens * h);
  pass.gemm("projection", c.sizes.tokens, c.sizes.value, h, GemmForm::kInputGrad);
  pass.traffic("gate", 5 * c.sizes.gate * c.sizes.tokens * c.bytes.activation);
  attention_core_backward(c, pass);
  attention_inputs_input_grad(c, pass);
  norm_input_grad(c, pass);
}

void input_grad(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.feeds_forward()) {
    branch_end_input_grad(c, pass);
    mlp_input_grad(c, pass);
    norm_input_grad(c, pass);
  }
  attention_input_grad(c, pass);
  exchange_branches(c, pass, tensor_branches(c), tensor_branches(c));
}

void weight_grad(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.feeds_forward()) mlp_weight_grad(c, pass);
  if (c.layer.heads > 0) attention_weight_grad(c, pass);
  if (c.work.tensor_parallel > 1 && c.work.sequence_parallel && c.stack.regathered_inputs) {
    pass.exchange(Group::kTensor, CollectiveKind::kAllGather, gathered_bytes(c), tensor_branches(c));
  }
}

}  // namespace

LayerOps transformer_ops(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                         ElementBytes bytes) {
  LayerWork whole_rows = work;  // frameworks compress queries and keys of all rows
  whole_rows.sequence_parallel = false;
  TransformerLayer dense = layer;  // of the program only attention is looked at
  dense.experts = 0;
  dense.states = {};
  const LayerProgram program = layer.heads > 0 ? layer_program(dense, whole_rows) : LayerProgram{};
  const LayerContext context{layer, work, program, stack, bytes, rank_sizes(layer, work)};
  LayerOps ops;
  forward(context, {ops.forward, bytes}, false);
  input_grad(context, {ops.input_grad, bytes});
  weight_grad(context, {ops.weight_grad, bytes});
  if (stack.selective == SelectiveKind::kAlternateProducts) {
    rebuild_alternate_products(context, {ops.rebuild_selective, bytes});
  } else if (stack.selective == SelectiveKind::kNormsAndActivations) {
    rebuild_norms_and_activations(context, {ops.rebuild_selective, bytes});
  } else if (layer.heads > 0) {
    attention_core_forward(context, {ops.rebuild_selective, bytes});
  }
  forward(context, {ops.rebuild_full, bytes}, stack.early_stop);
  return ops;
}

}}  // namespace plumb::planner
