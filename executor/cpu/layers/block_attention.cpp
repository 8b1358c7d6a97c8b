#include "executor/cpu/layers/block_attention.h"

#include <algorithm>

#include "executor/cpu/layers/context_attention.h"
#include "executor/cpu/layers/local_attention.h"
#include "executor/cpu/layers/tensor_parallel.h"

namespace plumb { inline namespace executor {
namespace {

AttentionSize attention_size(const TransformerLayer& layer, const LayerWork& work,
                             const AttentionDropout& dropout = {}) {
  return {.batch = work.microbatch,
          .sequence = work.sequence,
          .heads = layer.heads,
          .kv_heads = layer.kv_heads,
          .head_size = layer.head_size,
          .window = layer.window,
          .dropout = dropout};
}

AttentionDropout attention_dropout(const TransformerLayer& layer, const LayerCall& call) {
  return {.probability = layer.dropout,
          .key = dropout_site(call, kProbabilities, 0).key,
          .first_sample = call.place.first_sample,
          .first_head = tensor_rank(call.context) * layer.heads};
}

}  // namespace

std::int64_t attend_scratch_elements(const TransformerLayer& layer, const LayerWork& work, std::int64_t sequence,
                                     const ContextSeat& seat) {
  const AttentionSize size = attention_size(layer, work);
  if (seat.ranks == 1) return attention_scratch_elements(size);
  return std::max(attention_scratch_elements(size), ring_attention_scratch_elements(size, sequence, seat));
}

void attend(const TransformerLayer& layer, const LayerCall& call, const ContextSeat& seat, float* output,
            float* log_sum_exp, Tensor& qkv) {
  const CpuContext& context = call.context;
  const AttentionSize size = attention_size(layer, context.work, attention_dropout(layer, call));
  if (seat.ranks == 1)
    local_attention_forward(context, size, call.sequence, output, log_sum_exp, qkv.data());
  else if (seat.attention == ContextAttention::kRing)
    ring_attention_forward(context, size, seat, call.sequence, output, log_sum_exp, qkv.data());
  else
    qkv = ulysses_attention_forward(context, size, call.sequence, output, log_sum_exp, qkv.data());
}

void attend_backward(const TransformerLayer& layer, const LayerCall& call, const ContextSeat& seat, float* dqkv,
                     const float* doutput, const float* output, const float* log_sum_exp, const Tensor& qkv) {
  const CpuContext& context = call.context;
  const AttentionSize size = attention_size(layer, context.work, attention_dropout(layer, call));
  if (seat.ranks == 1)
    local_attention_backward(context, size, call.sequence, dqkv, doutput, qkv.data(), output, log_sum_exp);
  else if (seat.attention == ContextAttention::kRing)
    ring_attention_backward(context, size, seat, call.sequence, dqkv, doutput, qkv.data(), output, log_sum_exp);
  else
    ulysses_attention_backward(context, size, call.sequence, dqkv, doutput, qkv.data(), output, log_sum_exp);
}

}}  // namespace plumb::executor
