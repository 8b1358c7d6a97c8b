#include "planner/price/framework/layer_ops.h"

#include "planner/price/framework/state_mixer_ops.h"
#include "planner/price/framework/transformer_ops.h"
#include "planner/price/framework/vocabulary_ops.h"

namespace plumb { inline namespace planner {
namespace {

void add(PassOps& to, const PassOps& from) {
  to.kernels.insert(to.kernels.end(), from.kernels.begin(), from.kernels.end());
  to.exchanges.insert(to.exchanges.end(), from.exchanges.begin(), from.exchanges.end());
}

void add(LayerOps& to, const LayerOps& from) {
  add(to.forward, from.forward);
  add(to.input_grad, from.input_grad);
  add(to.weight_grad, from.weight_grad);
  add(to.rebuild_selective, from.rebuild_selective);
  add(to.rebuild_full, from.rebuild_full);
}

}  // namespace

LayerOps layer_ops(const Layer& layer, const LayerWork& work, const StackSpec& stack, ElementBytes bytes) {
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) return embedding_ops(*embedding, work, stack, bytes);
  if (const auto* head = std::get_if<HeadLayer>(&layer)) return head_ops(*head, work, stack, bytes);
  const auto& block = std::get<TransformerLayer>(layer);
  if (!block.mixes_states()) return transformer_ops(block, work, stack, bytes);
  LayerOps ops = state_mixer_ops(block, work, stack, bytes);
  if (block.heads > 0 || block.feeds_forward()) add(ops, transformer_ops(block, work, stack, bytes));
  return ops;
}

}}  // namespace plumb::planner
