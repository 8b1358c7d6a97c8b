#include <algorithm>

#include "kernels/layer/experts.h"
#include "kernels/layer/kind_parts.h"
#include "kernels/layer/transformer_share.h"

namespace plumb { inline namespace kernels {
namespace {

void append_attention(std::vector<ParameterTensor>& tensors, const TransformerLayer& block, int t) {
  const TransformerShare part = share_of(block, t);
  const std::int64_t h = block.hidden;
  if (block.kv_rank == 0) {
    tensors.push_back({"qkv.weight", {part.qkv_width, h}, 0});
    if (block.qkv_bias) tensors.push_back({"qkv.bias", {part.qkv_width}, 0});
    tensors.push_back({"attention_output.weight", {h, part.query_width}, 1});
  } else {
    if (block.query_rank > 0) {
      tensors.push_back({"query_down.weight", {block.query_rank, h}});
      append_norm(tensors, "query_norm", block.norm, block.query_rank);
    }
    tensors.push_back({"query_up.weight", {part.query_width, block.query_rank > 0 ? block.query_rank : h}, 0});
    tensors.push_back({"kv_down.weight", {block.kv_rank + block.rotary_size, h}});
    append_norm(tensors, "kv_norm", block.norm, block.kv_rank);
    const std::int64_t key_and_value = block.head_size - block.rotary_size + block.value_size;
    tensors.push_back({"kv_up.weight", {part.heads * key_and_value, block.kv_rank}, 0});
    tensors.push_back({"attention_output.weight", {h, part.heads * block.value_size}, 1});
  }
  if (block.linear_bias) tensors.push_back({"attention_output.bias", {h}});
}

void append_mlp(std::vector<ParameterTensor>& tensors, const TransformerLayer& block, int t) {
  const TransformerShare part = share_of(block, t);
  const std::int64_t h = block.hidden;
  const std::string up = block.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
  tensors.push_back({up + ".weight", {part.up_width, h}, 0});
  if (block.linear_bias) tensors.push_back({up + ".bias", {part.up_width}, 0});
  tensors.push_back({"down.weight", {h, part.ffn}, 1});
  if (block.linear_bias) tensors.push_back({"down.bias", {h}});
}

/// Appends the dropout at the end of a branch; each backward pass applies it to the branch's gradient again.
void append_dropout(std::vector<KernelCall>& calls, const TransformerLayer& layer, const LayerWork& work) {
  if (layer.dropout > 0) calls.push_back(kernel_call(KernelKind::kDropout, {residual_tokens_of(work), layer.hidden}));
}

/// Appends the kernels of the MLP, or of the mixture of experts.
void append_feed_forward(std::vector<KernelCall>& calls, const TransformerLayer& layer, const LayerWork& work,
                         Pass pass) {
  if (layer.experts > 0) {
    append_expert_kernels(calls, layer, work, pass);
    return;
  }
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  const std::int64_t tokens = tokens_in(work), rows = residual_tokens_of(work), h = layer.hidden;
  const std::int64_t gated = layer.mlp == MlpKind::kSwiglu ? 1 : 0;
  if (pass == Pass::kForward) {
    calls.push_back(gemm_call(tokens, part.up_width, h, GemmForm::kForward));
    if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasForward, {tokens, part.up_width}));
    calls.push_back(kernel_call(KernelKind::kActivationForward, {tokens, part.ffn, gated}));
    calls.push_back(gemm_call(tokens, h, part.ffn, GemmForm::kForward));
  } else if (pass == Pass::kInputGrad) {
    calls.push_back(gemm_call(tokens, part.ffn, h, GemmForm::kInputGrad));
    calls.push_back(kernel_call(KernelKind::kActivationBackward, {tokens, part.ffn, gated}));
    calls.push_back(gemm_call(tokens, h, part.up_width, GemmForm::kInputGrad));
  } else {
    calls.push_back(gemm_call(h, part.ffn, tokens, GemmForm::kWeightGrad));
    if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasBackward, {rows, h}));
    calls.push_back(gemm_call(part.up_width, h, tokens, GemmForm::kWeightGrad));
    if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasBackward, {tokens, part.up_width}));
  }
}

std::vector<KernelCall> transformer_forward(const TransformerLayer& layer, const LayerWork& work) {
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  const std::int64_t tokens = tokens_in(work), rows = residual_tokens_of(work), h = layer.hidden;
  std::vector<KernelCall> calls;
  calls.push_back(norm_call(KernelKind::kNormForward, rows, h, layer.norm));
  calls.push_back(gemm_call(tokens, part.qkv_width, h, GemmForm::kForward));
  if (layer.qkv_bias) calls.push_back(kernel_call(KernelKind::kBiasForward, {tokens, part.qkv_width}));
  if (layer.rotary_size > 0)
    calls.push_back(kernel_call(KernelKind::kRotary, {tokens, part.heads + part.kv_heads, layer.rotary_size}));
  calls.push_back(kernel_call(KernelKind::kAttentionForward, {work.microbatch, work.sequence, part.heads, part.kv_heads,
                                                              layer.head_size, layer.window}));
  calls.push_back(gemm_call(tokens, h, part.query_width, GemmForm::kForward));
  if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasForward, {rows, h}));
  append_dropout(calls, layer, work);
  calls.push_back(kernel_call(KernelKind::kResidualAdd, {rows, h}));
  calls.push_back(norm_call(KernelKind::kNormForward, rows, h, layer.norm));
  append_feed_forward(calls, layer, work, Pass::kForward);
  if (layer.linear_bias && layer.experts == 0) calls.push_back(kernel_call(KernelKind::kBiasForward, {rows, h}));
  append_dropout(calls, layer, work);
  calls.push_back(kernel_call(KernelKind::kResidualAdd, {rows, h}));
  return calls;
}

std::vector<KernelCall> transformer_input_grad(const TransformerLayer& layer, const LayerWork& work) {
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  const std::int64_t tokens = tokens_in(work), rows = residual_tokens_of(work), h = layer.hidden;
  std::vector<KernelCall> calls;
  append_dropout(calls, layer, work);
  append_feed_forward(calls, layer, work, Pass::kInputGrad);
  calls.push_back(norm_call(KernelKind::kNormBackward, rows, h, layer.norm));
  append_dropout(calls, layer, work);
  calls.push_back(gemm_call(tokens, part.query_width, h, GemmForm::kInputGrad));
  calls.push_back(kernel_call(KernelKind::kAttentionBackward, {work.microbatch, work.sequence, part.heads,
                                                               part.kv_heads, layer.head_size, layer.window}));
  if (layer.rotary_size > 0)
    calls.push_back(kernel_call(KernelKind::kRotary, {tokens, part.heads + part.kv_heads, layer.rotary_size}));
  calls.push_back(gemm_call(tokens, h, part.qkv_width, GemmForm::kInputGrad));
  calls.push_back(norm_call(KernelKind::kNormBackward, rows, h, layer.norm));
  return calls;
}

std::vector<KernelCall> transformer_weight_grad(const TransformerLayer& layer, const LayerWork& work) {
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  const std::int64_t tokens = tokens_in(work), rows = residual_tokens_of(work), h = layer.hidden;
  std::vector<KernelCall> calls;
  append_dropout(calls, layer, work);
  append_feed_forward(calls, layer, work, Pass::kWeightGrad);
  append_dropout(calls, layer, work);
  calls.push_back(gemm_call(h, part.query_width, tokens, GemmForm::kWeightGrad));
  if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasBackward, {rows, h}));
  calls.push_back(gemm_call(part.qkv_width, h, tokens, GemmForm::kWeightGrad));
  if (layer.qkv_bias) calls.push_back(kernel_call(KernelKind::kBiasBackward, {tokens, part.qkv_width}));
  return calls;
}

}  // namespace

std::vector<ParameterTensor> parameters_of(const TransformerLayer& layer, int tensor_parallel, ExpertDivision experts) {
  std::vector<ParameterTensor> tensors;
  append_norm(tensors, "norm1", layer.norm, layer.hidden);
  append_attention(tensors, layer, tensor_parallel);
  append_norm(tensors, "norm2", layer.norm, layer.hidden);
  if (layer.experts > 0) {
    append_expert_parameters(tensors, layer, tensor_parallel, experts);
  } else {
    append_mlp(tensors, layer, tensor_parallel);
  }
  return tensors;
}

std::vector<KernelCall> kernels_of(const TransformerLayer& layer, const LayerWork& work, Pass pass) {
  if (pass == Pass::kForward) return transformer_forward(layer, work);
  if (pass == Pass::kInputGrad) return transformer_input_grad(layer, work);
  return transformer_weight_grad(layer, work);
}

std::vector<SavedTensor> saved_of(const TransformerLayer& layer, const LayerWork& work) {
  const std::int64_t tokens = tokens_in(work), rows = residual_tokens_of(work);
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  const std::int64_t stream = rows * layer.hidden;  // elements of the residual stream
  const std::int64_t statistics = rows * statistics_per_row(layer.norm);
  std::vector<SavedTensor> tensors;
  tensors.push_back({.name = "input", .elements = stream, .needed_by_weight_grad = true});
  tensors.push_back({.name = "norm1 statistics", .elements = statistics, .single_precision = true});
  tensors.push_back({.name = "norm1 output", .elements = stream, .needed_by_weight_grad = true});
  tensors.push_back({.name = "qkv", .elements = tokens * part.qkv_width, .needed_by_weight_grad = true});
  tensors.push_back({.name = "log-sum-exp", .elements = tokens * part.heads, .single_precision = true});
  tensors.push_back({.name = "attention output", .elements = tokens * part.query_width, .needed_by_weight_grad = true});
  if (!layer.parallel_residual)
    tensors.push_back({.name = "residual", .elements = stream, .needed_by_weight_grad = true});
  tensors.push_back({.name = "norm2 statistics", .elements = statistics, .single_precision = true});
  tensors.push_back({.name = "norm2 output", .elements = stream, .needed_by_weight_grad = true});
  if (layer.experts > 0) {
    append_expert_saved(tensors, layer, work);
    return tensors;
  }
  tensors.push_back({.name = "up", .elements = tokens * part.up_width, .needed_by_weight_grad = true});
  tensors.push_back({.name = "activation", .elements = tokens * part.ffn, .needed_by_weight_grad = true});
  return tensors;
}

std::int64_t workspace_of(const TransformerLayer& layer, const LayerWork& work, Pass pass) {
  const std::int64_t tokens = tokens_in(work), stream = residual_tokens_of(work) * layer.hidden;
  const std::int64_t partial_sum = layer.parallel_residual ? stream : 0;  // partial sum of the two branches
  const std::int64_t dropped = layer.dropout > 0 ? stream : 0;            // a branch's gradient behind its dropout
  const bool mixture = layer.experts > 0;
  if (pass == Pass::kForward) return partial_sum + (mixture ? expert_workspace(layer, work, pass) : 0);
  if (pass != Pass::kInputGrad) return dropped;
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  // The gradients that the experts leave for the weight gradient take no saved tensor's place.
  const std::int64_t left = mixture ? expert_gradient_elements(layer, work) : 0;
  const std::int64_t feed_forward =
      mixture ? expert_workspace(layer, work, pass) : std::max(tokens * part.ffn, tokens * layer.hidden);
  // The stages in turn: the activation's gradient; a norm output's gradient; the attention output's gradient beside
  // that of Q, K and V, which takes the place of the saved Q, K and V when it is complete.
  return left +
         std::max({dropped + feed_forward, partial_sum + stream, partial_sum + dropped + tokens * part.query_width,
                   partial_sum + tokens * (part.query_width + part.qkv_width)});
}

std::int64_t input_of(const TransformerLayer& layer, const LayerWork& work) {
  return residual_tokens_of(work) * layer.hidden;
}

std::int64_t output_of(const TransformerLayer& layer, const LayerWork& work) {
  return residual_tokens_of(work) * layer.hidden;
}

}}  // namespace plumb::kernels
