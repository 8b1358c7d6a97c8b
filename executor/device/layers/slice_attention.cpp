#include "executor/device/layers/slice_attention.h"

namespace plumb { inline namespace executor {

DeviceSliceAttention::DeviceSliceAttention(const AttentionSize& size, std::int64_t whole_sequence,
                                           const TokenRange& tokens, std::int64_t element_bytes,
                                           DeviceLayerBytes& bytes)
    : size_(size), whole_(whole_sequence), tokens_(tokens), element_bytes_(element_bytes), kept_at_(bytes.sequences) {
  const std::int64_t elements = size.batch * whole_sequence * key_columns();
  bytes.sequences += aligned_bytes(elements * element_bytes);
  bytes.sequence_gradients = aligned_bytes(elements * std::int64_t{sizeof(float)});
}

SliceOperands DeviceSliceAttention::operands(const DeviceLayerCall& call, const AttentionSize& size,
                                             const std::byte* qkv) const {
  AttentionSize whole = size;
  whole.sequence = whole_;
  return {.qkv = qkv,
          .keys_values = kept(call),
          .slice = {.size = whole, .first = tokens_.first, .count = tokens_.count},
          .numbers = call.numbers};
}

void DeviceSliceAttention::forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output,
                                   float* log_sum_exp, const std::byte* qkv) const {
  const std::int64_t width = query_columns() + key_columns();
  for_each_sequence([&](std::int64_t own, std::int64_t whole) {
    call.kernels.copy_columns(kept(call) + whole * key_columns() * element_bytes_, key_columns(),
                              qkv + (own * width + query_columns()) * element_bytes_, width,
                              {tokens_.count, key_columns()});
  });
  call.kernels.attention_slice_forward(output, log_sum_exp, operands(call, size, qkv));
}

void DeviceSliceAttention::backward(const DeviceLayerCall& call, const AttentionSize& size,
                                    const AttentionGradients& of) const {
  const std::int64_t width = query_columns() + key_columns();
  call.kernels.attention_slice_backward(of.dqkv, call.sequence_gradients, of.products, of.doutput, of.output,
                                        of.log_sum_exp, operands(call, size, of.qkv));
  for_each_sequence([&](std::int64_t own, std::int64_t whole) {
    call.kernels.narrow_columns(of.dqkv + (own * width + query_columns()) * element_bytes_, width,
                                call.sequence_gradients + whole * key_columns(), {tokens_.count, key_columns()});
  });
}

}}  // namespace plumb::executor
