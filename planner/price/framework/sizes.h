#pragma once
// Sizes of a layer on one rank of a framework, in doubles: every list of kernels and every sum of bytes starts from
// them.

#include <cmath>

#include "kernels/layer.h"
#include "planner/price/framework/element_bytes.h"
#include "planner/price/framework/kernel.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

struct RankSizes {
  double tokens = 0;    ///< T = b s / c of one micro-batch
  double residual = 0;  ///< elements of the residual stream: T h, divided by t with sequence parallelism
  double stream = 0;    ///< T h
  double heads = 0;     ///< a / t
  double kv_heads = 0;  ///< k / t, at least 1
  double query = 0;     ///< channels of the queries: d a / t
  double value = 0;     ///< channels of the attention's output
  double qkv = 0;       ///< channels of queries, keys and values
  double gate = 0;      ///< channels of the gates of attention's output
  double halves = 0;    ///< halves of the block with a norm and a residual, besides a state mixer's
  double ffn = 0;       ///< f / t
  double up = 0;        ///< 2 f / t if gated, else f / t
};

/// The inputs from which the lists of a layer's parts are made.
struct LayerContext {
  const TransformerLayer& layer;
  const LayerWork& work;
  const LayerProgram& program;  ///< without division of rows and without experts
  const StackSpec& stack;
  ElementBytes bytes;
  RankSizes sizes;
};

inline RankSizes rank_sizes(const TransformerLayer& layer, const LayerWork& work) {
  const double t = work.tensor_parallel;
  RankSizes sizes;
  sizes.tokens = static_cast<double>(work.microbatch * work.sequence) / work.context_parallel;
  sizes.stream = sizes.tokens * static_cast<double>(layer.hidden);
  sizes.residual = work.sequence_parallel ? sizes.stream / t : sizes.stream;
  sizes.heads = static_cast<double>(layer.heads) / t;
  sizes.kv_heads = std::fmax(1, static_cast<double>(layer.kv_heads) / t);
  const auto head = static_cast<double>(layer.head_size);
  sizes.query = sizes.heads * head;
  sizes.value = sizes.heads * static_cast<double>(layer.value_size > 0 ? layer.value_size : layer.head_size);
  sizes.qkv = layer.kv_rank > 0 ? 2 * sizes.query + sizes.value : sizes.query + 2 * sizes.kv_heads * head;
  sizes.gate = layer.output_gate ? sizes.value : 0;
  sizes.halves = (layer.heads > 0 ? 1 : 0) + (layer.feeds_forward() ? 1 : 0);
  sizes.ffn = static_cast<double>(layer.ffn) / t;
  sizes.up = up_products(layer) * sizes.ffn;
  return sizes;
}

/// Returns the tokens that the fullest rank's experts compute over the mean: the stack's expert_imbalance, bounded by a
/// capacity; the whole capacity where experts are padded to it (Megatron's moe_expert_capacity_factor and
/// moe_pad_expert_input_to_capacity).
inline double expert_load(const TransformerLayer& layer, const StackSpec& stack) {
  if (layer.capacity_factor <= 0) return stack.expert_imbalance;
  return stack.padded_experts ? layer.capacity_factor : std::fmin(stack.expert_imbalance, layer.capacity_factor);
}

/// Returns the pairs of query and key that one rank computes for each head: s^2, or its causal half where the other is
/// skipped, over c.
inline double attention_pairs(const TransformerLayer& layer, const LayerWork& work, bool causal_skipped) {
  const auto s = static_cast<double>(work.sequence);
  const double w = layer.window > 0 ? std::fmin(s, static_cast<double>(layer.window)) : s;
  const double pairs = causal_skipped ? w * (w + 1) / 2 + (s - w) * w : s * s;
  return pairs / work.context_parallel;
}

}}  // namespace plumb::planner
