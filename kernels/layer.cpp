#include "kernels/layer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace plumb {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::int64_t share(std::int64_t total, int parts) {
  return (total + parts - 1) / parts;
}

/// A transformer layer's sizes on one tensor-parallel rank.
struct TransformerShare {
  std::int64_t heads;        // a/t
  std::int64_t kv_heads;     // k/t, at least 1
  std::int64_t query_width;  // d a/t
  std::int64_t qkv_width;    // d (a + 2k)/t
  std::int64_t ffn;          // f/t
  std::int64_t up_width;     // 2f/t if gated, else f/t
};

TransformerShare share_of(const TransformerLayer& layer, int tensor_parallel) {
  const std::int64_t heads = share(layer.heads, tensor_parallel);
  const std::int64_t kv_heads = std::max<std::int64_t>(1, share(layer.kv_heads, tensor_parallel));
  const std::int64_t ffn = share(layer.ffn, tensor_parallel);
  return {.heads = heads,
          .kv_heads = kv_heads,
          .query_width = heads * layer.head_size,
          .qkv_width = (heads + 2 * kv_heads) * layer.head_size,
          .ffn = ffn,
          .up_width = layer.mlp == MlpKind::kSwiglu ? 2 * ffn : ffn};
}

void append_norm(std::vector<ParameterTensor>& tensors, const std::string& name, NormKind kind, std::int64_t hidden) {
  tensors.push_back({name + ".gain", {hidden}});
  if (kind == NormKind::kLayerNorm) tensors.push_back({name + ".bias", {hidden}});
}

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

void append_experts(std::vector<ParameterTensor>& tensors, const TransformerLayer& block, int t,
                    ExpertDivision division) {
  const std::int64_t h = block.hidden;
  const std::int64_t matrices = block.mlp == MlpKind::kSwiglu ? 2 : 1;
  const std::string up = block.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
  const std::int64_t local = share(block.experts, division.parallel);
  const std::int64_t channels = share(block.expert_ffn, division.tensor);
  tensors.push_back({"router.weight", {block.experts, h}});
  tensors.push_back({"experts." + up + ".weight", {local, matrices * channels, h}, 1, true});
  tensors.push_back({"experts.down.weight", {local, h, channels}, 2, true});
  if (block.shared_ffn > 0) {
    const std::int64_t shared = share(block.shared_ffn, t);
    tensors.push_back({"shared." + up + ".weight", {matrices * shared, h}, 0});
    tensors.push_back({"shared.down.weight", {h, shared}, 1});
  }
}

std::int64_t is_layer_norm(NormKind kind) {
  return kind == NormKind::kLayerNorm ? 1 : 0;
}

std::int64_t tokens_of(const LayerWork& work) {
  return work.microbatch * work.sequence;
}

/// Tokens that norms, residuals and the output biases work on.
std::int64_t residual_tokens_of(const LayerWork& work) {
  return work.sequence_parallel ? share(tokens_of(work), work.tensor_parallel) : tokens_of(work);
}

std::int64_t statistics_per_row(NormKind kind) {
  return kind == NormKind::kLayerNorm ? 2 : 1;
}

KernelCall gemm(std::int64_t m, std::int64_t n, std::int64_t k, GemmForm form) {
  return kernel_call(KernelKind::kGemm, {m, n, k, 1, static_cast<std::int64_t>(form)});
}

KernelCall norm(KernelKind kind, std::int64_t rows, std::int64_t columns, NormKind norm_kind) {
  return kernel_call(kind, {rows, columns, is_layer_norm(norm_kind)});
}

std::vector<KernelCall> embedding_kernels(const EmbeddingLayer& layer, const LayerWork& work, Pass pass) {
  const std::vector<std::int64_t> shape = {tokens_of(work), layer.hidden, layer.positions > 0 ? 1 : 0};
  if (pass == Pass::kForward) return {kernel_call(KernelKind::kEmbeddingForward, shape)};
  if (pass == Pass::kWeightGrad) return {kernel_call(KernelKind::kEmbeddingBackward, shape)};
  return {};
}

std::vector<KernelCall> transformer_forward(const TransformerLayer& layer, const LayerWork& work) {
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  const std::int64_t tokens = tokens_of(work), rows = residual_tokens_of(work), h = layer.hidden;
  const std::int64_t gated = layer.mlp == MlpKind::kSwiglu ? 1 : 0;
  std::vector<KernelCall> calls;
  calls.push_back(norm(KernelKind::kNormForward, rows, h, layer.norm));
  calls.push_back(gemm(tokens, part.qkv_width, h, GemmForm::kForward));
  if (layer.qkv_bias) calls.push_back(kernel_call(KernelKind::kBiasForward, {tokens, part.qkv_width}));
  if (layer.rotary_size > 0)
    calls.push_back(kernel_call(KernelKind::kRotary, {tokens, part.heads + part.kv_heads, layer.rotary_size}));
  calls.push_back(kernel_call(KernelKind::kAttentionForward, {work.microbatch, work.sequence, part.heads, part.kv_heads,
                                                              layer.head_size, layer.window}));
  calls.push_back(gemm(tokens, h, part.query_width, GemmForm::kForward));
  if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasForward, {rows, h}));
  calls.push_back(kernel_call(KernelKind::kResidualAdd, {rows, h}));
  calls.push_back(norm(KernelKind::kNormForward, rows, h, layer.norm));
  calls.push_back(gemm(tokens, part.up_width, h, GemmForm::kForward));
  if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasForward, {tokens, part.up_width}));
  calls.push_back(kernel_call(KernelKind::kActivationForward, {tokens, part.ffn, gated}));
  calls.push_back(gemm(tokens, h, part.ffn, GemmForm::kForward));
  if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasForward, {rows, h}));
  calls.push_back(kernel_call(KernelKind::kResidualAdd, {rows, h}));
  return calls;
}

std::vector<KernelCall> transformer_input_grad(const TransformerLayer& layer, const LayerWork& work) {
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  const std::int64_t tokens = tokens_of(work), rows = residual_tokens_of(work), h = layer.hidden;
  const std::int64_t gated = layer.mlp == MlpKind::kSwiglu ? 1 : 0;
  std::vector<KernelCall> calls;
  calls.push_back(gemm(tokens, part.ffn, h, GemmForm::kInputGrad));
  calls.push_back(kernel_call(KernelKind::kActivationBackward, {tokens, part.ffn, gated}));
  calls.push_back(gemm(tokens, h, part.up_width, GemmForm::kInputGrad));
  calls.push_back(norm(KernelKind::kNormBackward, rows, h, layer.norm));
  calls.push_back(gemm(tokens, part.query_width, h, GemmForm::kInputGrad));
  calls.push_back(kernel_call(KernelKind::kAttentionBackward, {work.microbatch, work.sequence, part.heads,
                                                               part.kv_heads, layer.head_size, layer.window}));
  if (layer.rotary_size > 0)
    calls.push_back(kernel_call(KernelKind::kRotary, {tokens, part.heads + part.kv_heads, layer.rotary_size}));
  calls.push_back(gemm(tokens, h, part.qkv_width, GemmForm::kInputGrad));
  calls.push_back(norm(KernelKind::kNormBackward, rows, h, layer.norm));
  return calls;
}

std::vector<KernelCall> transformer_weight_grad(const TransformerLayer& layer, const LayerWork& work) {
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  const std::int64_t tokens = tokens_of(work), rows = residual_tokens_of(work), h = layer.hidden;
  std::vector<KernelCall> calls;
  calls.push_back(gemm(h, part.ffn, tokens, GemmForm::kWeightGrad));
  if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasBackward, {rows, h}));
  calls.push_back(gemm(part.up_width, h, tokens, GemmForm::kWeightGrad));
  if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasBackward, {tokens, part.up_width}));
  calls.push_back(gemm(h, part.query_width, tokens, GemmForm::kWeightGrad));
  if (layer.linear_bias) calls.push_back(kernel_call(KernelKind::kBiasBackward, {rows, h}));
  calls.push_back(gemm(part.qkv_width, h, tokens, GemmForm::kWeightGrad));
  if (layer.qkv_bias) calls.push_back(kernel_call(KernelKind::kBiasBackward, {tokens, part.qkv_width}));
  return calls;
}

std::vector<KernelCall> head_kernels(const HeadLayer& layer, const LayerWork& work, Pass pass) {
  const std::int64_t tokens = tokens_of(work), rows = residual_tokens_of(work), h = layer.hidden;
  const std::int64_t vocab = share(layer.vocab, work.tensor_parallel);
  if (pass == Pass::kForward)
    return {norm(KernelKind::kNormForward, rows, h, layer.norm), gemm(tokens, vocab, h, GemmForm::kForward),
            kernel_call(KernelKind::kCrossEntropy, {tokens, vocab})};
  if (pass == Pass::kInputGrad)
    return {gemm(tokens, h, vocab, GemmForm::kInputGrad), norm(KernelKind::kNormBackward, rows, h, layer.norm)};
  return {gemm(vocab, h, tokens, GemmForm::kWeightGrad)};
}

/// One update a parameter tensor: weight decay differs between them.
std::vector<KernelCall> optimizer_kernels(const Layer& layer, int tensor_parallel) {
  std::vector<KernelCall> calls;
  for (const ParameterTensor& tensor : layer_parameters(layer, tensor_parallel))
    calls.push_back(kernel_call(KernelKind::kAdamW, {element_count(tensor)}));
  return calls;
}

/// Pairs of query and key that causal attention computes for a sequence: each query sees itself and its past, at most
/// `window` keys in all where there is a window.
double attention_pairs(std::int64_t sequence, std::int64_t window) {
  const double s = static_cast<double>(sequence);
  if (window <= 0 || window >= sequence) return s * (s + 1) / 2;
  const double w = static_cast<double>(window);
  return w * (w + 1) / 2 + (s - w) * w;
}

struct Work {
  double flops = 0;
  double elements = 0;
};

Work work_of(KernelKind kind, const std::vector<std::int64_t>& shape) {
  const auto size = [&](int index) { return static_cast<double>(shape[static_cast<std::size_t>(index)]); };
  const double area = shape.size() >= 2 ? size(0) * size(1) : 0;
  switch (kind) {
    case KernelKind::kGemm: {
      const bool accumulates = shape[4] == static_cast<std::int64_t>(GemmForm::kWeightGrad);
      return {2 * area * size(2) * size(3),
              (size(0) * size(2) + size(2) * size(1) + area * (accumulates ? 2 : 1)) * size(3)};
    }
    case KernelKind::kAttentionForward:
    case KernelKind::kAttentionBackward: {
      // Two products forward, five backward: the scores again, dV, dP, dQ, dK.
      const bool forward = kind == KernelKind::kAttentionForward;
      const double pairs = attention_pairs(shape[1], shape[5]);
      return {(forward ? 4 : 10) * size(0) * size(2) * size(4) * pairs,
              (forward ? 2 : 4) * area * (size(2) + size(3)) * size(4)};
    }
    case KernelKind::kNormForward:
      return {(shape[2] ? 7 : 4) * area, 2 * area};
    case KernelKind::kNormBackward:
      return {(shape[2] ? 13 : 10) * area, 4 * area};
    case KernelKind::kActivationForward:
      return {(shape[2] ? 5 : 8) * area, (shape[2] ? 3 : 2) * area};
    case KernelKind::kActivationBackward:
      return {(shape[2] ? 10 : 14) * area, (shape[2] ? 5 : 3) * area};
    case KernelKind::kBiasForward:
      return {area, 2 * area};
    case KernelKind::kBiasBackward:
      return {area, area};
    case KernelKind::kRotary:
      return {3 * area * size(2), 2 * area * size(2)};
    case KernelKind::kResidualAdd:
      return {area, 3 * area};
    case KernelKind::kEmbeddingForward:
      return {size(2) * area, (2 + size(2)) * area};
    case KernelKind::kEmbeddingBackward:
      return {(1 + size(2)) * area, (3 + 2 * size(2)) * area};
    case KernelKind::kCrossEntropy:
      return {5 * area, 2 * area};
    case KernelKind::kAdamW:
      return {14 * size(0), 8 * size(0)};
  }
  return {};
}

struct KindInfo {
  std::string_view name;
  std::size_t shape_length;
};
constexpr std::array<KindInfo, kKernelKindCount> kKinds = {{{"gemm", 5},
                                                            {"attention_forward", 6},
                                                            {"attention_backward", 6},
                                                            {"norm_forward", 3},
                                                            {"norm_backward", 3},
                                                            {"activation_forward", 3},
                                                            {"activation_backward", 3},
                                                            {"bias_forward", 2},
                                                            {"bias_backward", 2},
                                                            {"rotary", 3},
                                                            {"residual_add", 2},
                                                            {"embedding_forward", 3},
                                                            {"embedding_backward", 3},
                                                            {"cross_entropy", 2},
                                                            {"adamw", 1}}};

}  // namespace

std::string_view layer_kind_name(const Layer& layer) {
  constexpr std::array<std::string_view, 3> kNames = {"embedding", "transformer", "head"};
  return kNames[layer.index()];
}

std::vector<ParameterTensor> layer_parameters(const Layer& layer, int tensor_parallel, ExpertDivision experts) {
  const int t = tensor_parallel;
  std::vector<ParameterTensor> tensors;
  std::visit(Overloaded{
                 [&](const EmbeddingLayer& embedding) {
                   tensors.push_back({"tokens.weight", {share(embedding.vocab, t), embedding.hidden}, 0});
                   if (embedding.positions > 0)
                     tensors.push_back({"positions.weight", {embedding.positions, embedding.hidden}});
                 },
                 [&](const TransformerLayer& block) {
                   append_norm(tensors, "norm1", block.norm, block.hidden);
                   append_attention(tensors, block, t);
                   append_norm(tensors, "norm2", block.norm, block.hidden);
                   if (block.experts > 0) {
                     append_experts(tensors, block, t, experts);
                   } else {
                     append_mlp(tensors, block, t);
                   }
                 },
                 [&](const HeadLayer& head) {
                   append_norm(tensors, "norm", head.norm, head.hidden);
                   tensors.push_back({"projection.weight", {share(head.vocab, t), head.hidden}, 0});
                 },
             },
             layer);
  return tensors;
}

std::int64_t element_count(const ParameterTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

std::int64_t parameter_count(const Layer& layer, int tensor_parallel, ExpertDivision experts) {
  std::int64_t count = 0;
  for (const ParameterTensor& tensor : layer_parameters(layer, tensor_parallel, experts))
    count += element_count(tensor);
  return count;
}

std::int64_t expert_parameter_count(const Layer& layer, ExpertDivision experts) {
  std::int64_t count = 0;
  for (const ParameterTensor& tensor : layer_parameters(layer, 1, experts)) {
    if (tensor.expert) count += element_count(tensor);
  }
  return count;
}

bool has_kernels(const Layer& layer) {
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) return embedding->dropout == 0;
  const auto* block = std::get_if<TransformerLayer>(&layer);
  return block == nullptr || (block->experts == 0 && block->kv_rank == 0 && block->dropout == 0);
}

std::string_view kernel_name(KernelKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].name;
}

KernelCall kernel_call(KernelKind kind, std::vector<std::int64_t> shape) {
  assert(shape.size() == kKinds[static_cast<std::size_t>(kind)].shape_length);
  const Work work = work_of(kind, shape);
  return {.kind = kind, .shape = std::move(shape), .flops = work.flops, .elements_moved = work.elements};
}

std::vector<KernelCall> layer_kernels(const Layer& layer, const LayerWork& work, Pass pass) {
  assert(has_kernels(layer));
  if (pass == Pass::kOptimizer) return optimizer_kernels(layer, work.tensor_parallel);
  return std::visit(Overloaded{
                        [&](const EmbeddingLayer& embedding) { return embedding_kernels(embedding, work, pass); },
                        [&](const TransformerLayer& block) {
                          if (pass == Pass::kForward) return transformer_forward(block, work);
                          if (pass == Pass::kInputGrad) return transformer_input_grad(block, work);
                          return transformer_weight_grad(block, work);
                        },
                        [&](const HeadLayer& head) { return head_kernels(head, work, pass); },
                    },
                    layer);
}

std::vector<SavedTensor> saved_tensors(const Layer& layer, const LayerWork& work) {
  const std::int64_t tokens = tokens_of(work), rows = residual_tokens_of(work);
  return std::visit(
      Overloaded{
          [&](const EmbeddingLayer&) -> std::vector<SavedTensor> {
            return {{.name = "tokens", .elements = tokens, .single_precision = true, .needed_by_weight_grad = true}};
          },
          [&](const TransformerLayer& block) {
            const TransformerShare part = share_of(block, work.tensor_parallel);
            const std::int64_t stream = rows * block.hidden;  // of the residual stream
            const std::int64_t statistics = rows * statistics_per_row(block.norm);
            std::vector<SavedTensor> tensors;
            tensors.push_back({.name = "input", .elements = stream, .needed_by_weight_grad = true});
            tensors.push_back({.name = "norm1 statistics", .elements = statistics, .single_precision = true});
            tensors.push_back({.name = "norm1 output", .elements = stream, .needed_by_weight_grad = true});
            tensors.push_back({.name = "qkv", .elements = tokens * part.qkv_width, .needed_by_weight_grad = true});
            tensors.push_back({.name = "log-sum-exp", .elements = tokens * part.heads, .single_precision = true});
            tensors.push_back(
                {.name = "attention output", .elements = tokens * part.query_width, .needed_by_weight_grad = true});
            if (!block.parallel_residual)
              tensors.push_back({.name = "residual", .elements = stream, .needed_by_weight_grad = true});
            tensors.push_back({.name = "norm2 statistics", .elements = statistics, .single_precision = true});
            tensors.push_back({.name = "norm2 output", .elements = stream, .needed_by_weight_grad = true});
            tensors.push_back({.name = "up", .elements = tokens * part.up_width, .needed_by_weight_grad = true});
            tensors.push_back({.name = "activation", .elements = tokens * part.ffn, .needed_by_weight_grad = true});
            return tensors;
          },
          [&](const HeadLayer& head) -> std::vector<SavedTensor> {
            const std::int64_t stream = rows * head.hidden;
            return {
                {.name = "input", .elements = stream, .needed_by_weight_grad = true},
                {.name = "norm statistics", .elements = rows * statistics_per_row(head.norm), .single_precision = true},
                {.name = "norm output", .elements = stream, .needed_by_weight_grad = true},
                {.name = "logits",
                 .elements = tokens * share(head.vocab, work.tensor_parallel),
                 .needed_by_weight_grad = true}};
          },
      },
      layer);
}

std::int64_t workspace_elements(const Layer& layer, const LayerWork& work, Pass pass) {
  const std::int64_t tokens = tokens_of(work), rows = residual_tokens_of(work);
  if (const auto* head = std::get_if<HeadLayer>(&layer))
    return pass == Pass::kInputGrad ? rows * head->hidden : 0;  // the norm output's gradient
  const auto* block = std::get_if<TransformerLayer>(&layer);
  if (block == nullptr) return 0;
  const std::int64_t stream = rows * block->hidden;
  const std::int64_t partial_sum = block->parallel_residual ? stream : 0;  // of the two branches
  if (pass == Pass::kForward) return partial_sum;
  if (pass != Pass::kInputGrad) return 0;
  const TransformerShare part = share_of(*block, work.tensor_parallel);
  // In turn: the activation's gradient; a norm output's gradient; the attention output's gradient beside that of Q, K,
  // V, which takes the place of the saved one when it is complete.
  return std::max(
      {tokens * part.ffn, partial_sum + stream, partial_sum + tokens * (part.query_width + part.qkv_width)});
}

std::int64_t output_elements(const Layer& layer, const LayerWork& work) {
  const std::int64_t rows = residual_tokens_of(work);
  return std::visit(Overloaded{[&](const EmbeddingLayer& embedding) { return rows * embedding.hidden; },
                               [&](const TransformerLayer& block) { return rows * block.hidden; },
                               [&](const HeadLayer&) { return std::int64_t{0}; }},
                    layer);
}

}  // namespace plumb
