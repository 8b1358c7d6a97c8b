#include "executor/layers/host/local_attention.h"

namespace plumb { inline namespace executor {
namespace {

AttentionSlice slice_of(const CpuContext& context, const AttentionSize& size) {
  AttentionSize whole = size;
  whole.sequence = context.whole_sequence;
  return {.size = whole, .first = context.first_token, .count = size.sequence};
}

}  // namespace

void local_attention_forward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                             float* output, float* log_sum_exp, const float* qkv) {
  if (sequence == nullptr) {
    context.kernels.attention_forward(output, log_sum_exp, qkv, size, context.scratch);
    return;
  }
  const AttentionSlice slice = slice_of(context, size);
  if (sequence->keys_values.empty())
    sequence->keys_values = context.pool->take(size.batch * context.whole_sequence * size.key_value_width());
  keep_keys_values(sequence->keys_values.data(), qkv, slice);
  context.kernels.attention_slice_forward(output, log_sum_exp, qkv, sequence->keys_values.data(), slice,
                                          context.scratch);
}

void local_attention_backward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                              float* dqkv, const float* doutput, const float* qkv, const float* output,
                              const float* log_sum_exp) {
  if (sequence == nullptr) {
    context.kernels.attention_backward(dqkv, doutput, qkv, output, log_sum_exp, size, context.scratch);
    return;
  }
  const AttentionSlice slice = slice_of(context, size);
  if (sequence->gradients.empty()) sequence->gradients = context.pool->take_zeros(sequence->keys_values.elements());
  context.kernels.attention_slice_backward(dqkv, sequence->gradients.data(), doutput, qkv, sequence->keys_values.data(),
                                           output, log_sum_exp, slice, context.scratch);
  take_keys_values(dqkv, sequence->gradients.data(), slice);
  if (context.slice == 0) sequence->release_attention();
}

}}  // namespace plumb::executor
