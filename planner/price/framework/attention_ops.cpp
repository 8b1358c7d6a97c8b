#include "planner/price/framework/attention_ops.h"

namespace plumb { inline namespace planner {
namespace {

using enum GemmForm;

double score_bytes(const LayerContext& c) {
  return static_cast<double>(c.work.microbatch) * c.sizes.heads * static_cast<double>(c.work.sequence) *
         static_cast<double>(c.work.sequence) / c.work.context_parallel * c.bytes.activation;
}

/// Kernels of scale, mask and the conversions to fp32 and back, where softmax is not fused.
constexpr int kUnfusedLaunches = 10;

/// The fused softmax's kernel works on blocks of rows of batch times heads.
bool softmax_is_fused(const LayerContext& c) {
  if (!c.stack.fused_softmax) return false;
  const auto rows = static_cast<std::int64_t>(static_cast<double>(c.work.microbatch) * c.sizes.heads + .5);
  return c.stack.fused_softmax_rows == 0 || rows % c.stack.fused_softmax_rows == 0;
}

double rotary_bytes(const LayerContext& c) {
  if (c.layer.rotary_size == 0) return 0;
  const double heads = c.layer.kv_rank > 0 ? c.sizes.heads + 1 : c.sizes.heads + c.sizes.kv_heads;
  return 2 * c.sizes.tokens * heads * static_cast<double>(c.layer.rotary_size) * c.bytes.activation;
}

/// Latent attention: channels into which the compressed keys and values are projected, without the turned channels that
/// all heads share.
double kv_up_channels(const LayerContext& c) {
  return c.sizes.heads * static_cast<double>(c.layer.head_size - c.layer.rotary_size) + c.sizes.value;
}

double core_flops(const LayerContext& c) {
  const auto head = static_cast<double>(c.layer.head_size);
  const double value = c.sizes.value / c.sizes.heads;
  return 2 * static_cast<double>(c.work.microbatch) * c.sizes.heads *
         attention_pairs(c.layer, c.work, c.stack.causal_skipped) * (head + value);
}

double core_bytes(const LayerContext& c) {
  return (c.sizes.qkv + c.sizes.value) * c.sizes.tokens * c.bytes.activation;
}

/// A ring computes attention block by block, and weighs each block's result into the sum.
int core_launches(const LayerContext& c) {
  return c.stack.context == ContextKind::kRing ? 2 * c.work.context_parallel - 1 : 1;
}

double kv_bytes(const LayerContext& c) {
  const double channels = c.stack.repeated_heads ? c.sizes.query + c.sizes.value : c.sizes.qkv - c.sizes.query;
  return channels * c.sizes.tokens * c.bytes.activation;
}

/// Adds the collectives of a context-parallel group for one pass over the core. A ring moves as much as an all-gather.
void exchange_context(const LayerContext& c, const PassBuilder& pass, bool backward) {
  if (c.work.context_parallel == 1) return;
  if (c.stack.context == ContextKind::kUlysses) {
    pass.exchange(Group::kContext, CollectiveKind::kAllToAll,
                  (c.sizes.qkv + c.sizes.value) * c.sizes.tokens * c.bytes.activation);
    return;
  }
  const double gathered = kv_bytes(c) * c.work.context_parallel;
  pass.exchange(Group::kContext, CollectiveKind::kAllGather, gathered);
  if (backward) pass.exchange(Group::kContext, CollectiveKind::kReduceScatter, gathered);
}

}  // namespace

void attention_inputs_forward(const LayerContext& c, const PassBuilder& pass) {
  const double tokens = c.sizes.tokens;
  const auto h = static_cast<double>(c.layer.hidden);
  if (c.layer.kv_rank == 0) {
    pass.gemm("qkv", tokens, c.sizes.qkv, h);
  } else {
    const auto kv = static_cast<double>(c.layer.kv_rank);
    const auto rotary = static_cast<double>(c.layer.rotary_size);
    if (c.layer.query_rank > 0) {
      const auto rank = static_cast<double>(c.layer.query_rank);
      pass.gemm("query down", tokens, rank, h);
      pass.traffic("query norm", 2 * tokens * rank * c.bytes.activation);
      pass.gemm("query up", tokens, c.sizes.query, rank);
    } else {
      pass.gemm("query", tokens, c.sizes.query, h);
    }
    pass.gemm("kv down", tokens, kv + rotary, h);
    pass.traffic("kv norm", 2 * tokens * kv * c.bytes.activation);
    pass.gemm("kv up", tokens, kv_up_channels(c), kv);
    pass.traffic("keys joined", 2 * tokens * c.sizes.query * c.bytes.activation);
  }
  pass.traffic("rope", rotary_bytes(c));
}

void attention_inputs_rebuild(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.kv_rank > 0) {
    attention_inputs_forward(c, pass);
    return;
  }
  pass.gemm("keys", c.sizes.tokens, c.sizes.kv_heads * static_cast<double>(c.layer.head_size),
            static_cast<double>(c.layer.hidden));
  pass.traffic("rope", rotary_bytes(c));
}

void attention_inputs_input_grad(const LayerContext& c, const PassBuilder& pass) {
  const double tokens = c.sizes.tokens;
  const auto h = static_cast<double>(c.layer.hidden);
  pass.traffic("rope", rotary_bytes(c));
  if (c.layer.kv_rank == 0) {
    pass.traffic("qkv gradients joined", (c.layer.qkv_bias ? 3 : 2) * tokens * c.sizes.qkv * c.bytes.activation);
    pass.cast(tokens * c.sizes.qkv);
    pass.gemm("qkv", tokens, h, c.sizes.qkv, kInputGrad);
    return;
  }
  const auto kv = static_cast<double>(c.layer.kv_rank);
  const auto rotary = static_cast<double>(c.layer.rotary_size);
  pass.traffic("keys joined", 2 * tokens * c.sizes.query * c.bytes.activation);
  pass.gemm("kv up", tokens, kv, kv_up_channels(c), kInputGrad);
  pass.traffic("kv norm", 4 * tokens * kv * c.bytes.activation);
  pass.gemm("kv down", tokens, h, kv + rotary, kInputGrad);
  if (c.layer.query_rank > 0) {
    const auto rank = static_cast<double>(c.layer.query_rank);
    pass.gemm("query up", tokens, rank, c.sizes.query, kInputGrad);
    pass.traffic("query norm", 4 * tokens * rank * c.bytes.activation);
    pass.gemm("query down", tokens, h, rank, kInputGrad);
  } else {
    pass.gemm("query", tokens, h, c.sizes.query, kInputGrad);
  }
  pass.traffic("gradients of both summed", 3 * tokens * h * c.bytes.activation);
}

void attention_inputs_weight_grad(const LayerContext& c, const PassBuilder& pass) {
  const double tokens = c.sizes.tokens;
  const auto h = static_cast<double>(c.layer.hidden);
  const bool fused = c.stack.fused_accumulation;
  if (c.layer.kv_rank == 0) {
    pass.weight_gradient("qkv", c.sizes.qkv, h, tokens, fused);
    return;
  }
  const auto kv = static_cast<double>(c.layer.kv_rank);
  pass.weight_gradient("kv up", kv_up_channels(c), kv, tokens, fused);
  pass.weight_gradient("kv down", kv + static_cast<double>(c.layer.rotary_size), h, tokens, fused);
  if (c.layer.query_rank > 0) {
    const auto rank = static_cast<double>(c.layer.query_rank);
    pass.weight_gradient("query up", c.sizes.query, rank, tokens, fused);
    pass.weight_gradient("query down", rank, h, tokens, fused);
  } else {
    pass.weight_gradient("query", c.sizes.query, h, tokens, fused);
  }
}

void attention_core_forward(const LayerContext& c, const PassBuilder& pass) {
  exchange_context(c, pass, false);
  if (c.stack.attention != AttentionKernel::kUnfused) {
    pass.attention("attention", DeviceKernel::Kind::kAttentionForward, core_flops(c),
                   static_cast<double>(c.work.sequence), core_bytes(c), core_launches(c));
    return;
  }
  const auto s = static_cast<double>(c.work.sequence);
  const auto d = static_cast<double>(c.layer.head_size);
  const double batch = static_cast<double>(c.work.microbatch) * c.sizes.heads;
  const double scores = score_bytes(c);
  pass.batched("scores", s / c.work.context_parallel, s, d, batch, d);
  pass.traffic("softmax", 2 * scores);
  if (!softmax_is_fused(c)) pass.traffic("scale, mask, casts", 6 * scores, kUnfusedLaunches);
  if (c.layer.dropout > 0) pass.traffic("attention dropout", 2.5 * scores);
  pass.batched("context", s / c.work.context_parallel, d, s, batch, d);
  pass.traffic("context copied", 2 * c.sizes.value * c.sizes.tokens * c.bytes.activation);
}

void attention_core_backward(const LayerContext& c, const PassBuilder& pass) {
  exchange_context(c, pass, true);
  if (c.stack.attention != AttentionKernel::kUnfused) {
    pass.attention("attention", DeviceKernel::Kind::kAttentionBackward, 2.5 * core_flops(c),
                   static_cast<double>(c.work.sequence), 2 * core_bytes(c), core_launches(c));
    return;
  }
  const auto s = static_cast<double>(c.work.sequence);
  const auto d = static_cast<double>(c.layer.head_size);
  const double batch = static_cast<double>(c.work.microbatch) * c.sizes.heads;
  const double scores = score_bytes(c);
  const double rows = s / c.work.context_parallel;
  pass.batched("gradient of probabilities", rows, s, d, batch, d);
  pass.batched("gradient of values", s, d, rows, batch, d);
  if (c.layer.dropout > 0) pass.traffic("attention dropout", 2.5 * scores);
  pass.traffic("softmax", 3 * scores);
  if (!softmax_is_fused(c)) pass.traffic("scale, mask, casts", 6 * scores, kUnfusedLaunches);
  pass.batched("gradient of queries", rows, d, s, batch, d);
  pass.batched("gradient of keys", s, d, rows, batch, d);
}

}}  // namespace plumb::planner
