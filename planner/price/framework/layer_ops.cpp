#include "planner/price/framework/layer_ops.h"

#include "planner/price/framework/mamba2_ops.h"
#include "planner/price/framework/transformer_ops.h"
#include "planner/price/framework/vocabulary_ops.h"

namespace plumb { inline namespace planner {

LayerOps layer_ops(const Layer& layer, const LayerWork& work, const StackSpec& stack, ElementBytes bytes) {
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) return embedding_ops(*embedding, work, stack, bytes);
  if (const auto* head = std::get_if<HeadLayer>(&layer)) return head_ops(*head, work, stack, bytes);
  if (const auto* mamba2 = std::get_if<Mamba2Layer>(&layer)) return mamba2_ops(*mamba2, work, stack, bytes);
  return transformer_ops(std::get<TransformerLayer>(layer), work, stack, bytes);
}

}}  // namespace plumb::planner
