#include "executor/cpu/block_attention.h"

#include <algorithm>

#include "executor/cpu/context_attention.h"
#include "executor/cpu/tensor_parallel.h"

namespace plumb {
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

AttentionSlice attention_slice(const TransformerLayer& layer, const LayerCall& call) {
  const CpuContext& context = call.context;
  LayerWork whole = context.work;
  whole.sequence = context.whole_sequence;
  return {.size = attention_size(layer, whole, attention_dropout(layer, call)),
          .first = context.first_token,
          .count = context.work.sequence};
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
  SequenceSaved* sequence = call.sequence;
  const AttentionSize size = attention_size(layer, context.work, attention_dropout(layer, call));
  if (seat.ranks > 1 && seat.attention == ContextAttention::kRing) {
    ring_attention_forward(context, size, seat, output, log_sum_exp, qkv.data());
    return;
  }
  if (seat.ranks > 1) {
    qkv = ulysses_attention_forward(context, size, output, log_sum_exp, qkv.data());
    return;
  }
  if (sequence == nullptr) {
    context.kernels.attention_forward(output, log_sum_exp, qkv.data(), size, context.scratch);
    return;
  }
  const AttentionSlice slice = attention_slice(layer, call);
  if (sequence->keys_values.empty())
    sequence->keys_values =
        context.pool->take(context.work.microbatch * context.whole_sequence * 2 * layer.kv_heads * layer.head_size);
  keep_keys_values(sequence->keys_values.data(), qkv.data(), slice);
  context.kernels.attention_slice_forward(output, log_sum_exp, qkv.data(), sequence->keys_values.data(), slice,
                                          context.scratch);
}

void attend_backward(const TransformerLayer& layer, const LayerCall& call, const ContextSeat& seat, float* dqkv,
                     const float* doutput, const float* output, const float* log_sum_exp, const Tensor& qkv) {
  const CpuContext& context = call.context;
  SequenceSaved* sequence = call.sequence;
  const AttentionSize size = attention_size(layer, context.work, attention_dropout(layer, call));
  if (seat.ranks > 1 && seat.attention == ContextAttention::kRing) {
    ring_attention_backward(context, size, seat, dqkv, doutput, qkv.data(), output, log_sum_exp);
    return;
  }
  if (seat.ranks > 1) {
    ulysses_attention_backward(context, size, dqkv, doutput, qkv.data(), output, log_sum_exp);
    return;
  }
  if (sequence == nullptr) {
    context.kernels.attention_backward(dqkv, doutput, qkv.data(), output, log_sum_exp, size, context.scratch);
    return;
  }
  const AttentionSlice slice = attention_slice(layer, call);
  if (sequence->gradients.empty()) sequence->gradients = context.pool->take_zeros(sequence->keys_values.elements());
  context.kernels.attention_slice_backward(dqkv, sequence->gradients.data(), doutput, qkv.data(),
                                           sequence->keys_values.data(), output, log_sum_exp, slice, context.scratch);
  take_keys_values(dqkv, sequence->gradients.data(), slice);
  if (slice.first == 0) *sequence = {};
}

}  // namespace plumb
