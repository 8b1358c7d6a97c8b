// The model's two ends: embedding and head.

#include <utility>

#include "executor/cpu/layers.h"

namespace plumb {
namespace {

std::int64_t tokens_of(const LayerWork& work) {
  return work.microbatch * work.sequence;
}

template <class T>
T* at_offset(T* block, std::int64_t offset) {
  return offset < 0 ? nullptr : block + offset;
}

}  // namespace

std::int64_t parameter_offset(const Layer& layer, const std::string& name) {
  std::int64_t offset = 0;
  for (const ParameterTensor& tensor : layer_parameters(layer)) {
    if (tensor.name == name) return offset;
    offset += element_count(tensor);
  }
  return -1;
}

CpuEmbedding::CpuEmbedding(const EmbeddingLayer& embedding)
    : layer(embedding),
      at{.tokens = parameter_offset(embedding, "tokens.weight"),
         .positions = parameter_offset(embedding, "positions.weight")} {}

Tensor CpuEmbedding::forward(const CpuContext& context, const float* weights, EmbeddingSaved& saved) const {
  Tensor output = context.pool->take(tokens_of(context.work) * layer.hidden);
  context.kernels.embedding_forward(output.data(), saved.tokens.tokens(), weights + at.tokens,
                                    positions_from(weights, context), layer, context.work);
  return output;
}

void CpuEmbedding::weight_grad(const CpuContext& context, float* gradients, EmbeddingSaved& saved) const {
  context.kernels.embedding_backward(gradients + at.tokens, positions_from(gradients, context),
                                     saved.output_gradient.data(), saved.tokens.tokens(), layer, context.work);
}

CpuHead::CpuHead(const HeadLayer& head)
    : layer(head),
      at{.norm_gain = parameter_offset(head, "norm.gain"),
         .norm_bias = parameter_offset(head, "norm.bias"),
         .projection = parameter_offset(head, "projection.weight")} {}

double CpuHead::forward(const CpuContext& context, const float* weights, Tensor input, const Tensor& targets,
                        float gradient_scale, HeadSaved& saved) const {
  const std::int64_t rows = tokens_of(context.work);
  TensorPool& pool = *context.pool;
  saved.input = std::move(input);
  saved.norm_statistics = pool.take(layer.norm == NormKind::kLayerNorm ? 2 * rows : rows);
  saved.norm_output = pool.take(rows * layer.hidden);
  saved.logits = pool.take(rows * layer.vocab);
  context.kernels.norm_forward(layer.norm, saved.norm_output.data(), saved.norm_statistics.data(), saved.input.data(),
                               {weights + at.norm_gain, at_offset(weights, at.norm_bias)}, {rows, layer.hidden},
                               layer.norm_epsilon);
  context.kernels.linear_forward(saved.logits.data(), saved.norm_output.data(), weights + at.projection,
                                 {rows, layer.vocab, layer.hidden});
  return context.kernels.cross_entropy(saved.logits.data(), targets.tokens(), rows, layer.vocab, gradient_scale);
}

Tensor CpuHead::input_grad(const CpuContext& context, const float* weights, float* gradients, HeadSaved& saved) const {
  const std::int64_t rows = tokens_of(context.work);
  Tensor dnorm = context.pool->take(rows * layer.hidden);
  context.kernels.linear_input_grad(dnorm.data(), saved.logits.data(), weights + at.projection,
                                    {rows, layer.hidden, layer.vocab});
  context.kernels.norm_backward(layer.norm, saved.input.data(),
                                {gradients + at.norm_gain, at_offset(gradients, at.norm_bias)}, dnorm.data(), nullptr,
                                saved.input.data(), saved.norm_statistics.data(),
                                {weights + at.norm_gain, at_offset(weights, at.norm_bias)}, {rows, layer.hidden});
  saved.norm_statistics = {};
  return std::move(saved.input);
}

void CpuHead::weight_grad(const CpuContext& context, float* gradients, HeadSaved& saved) const {
  const std::int64_t rows = tokens_of(context.work);
  context.kernels.linear_weight_grad(gradients + at.projection, saved.logits.data(), saved.norm_output.data(),
                                     {layer.vocab, layer.hidden, rows});
}

}  // namespace plumb
