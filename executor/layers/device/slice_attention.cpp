#include "executor/layers/device/slice_attention.h"

#include "executor/layers/device/attention_gradients.h"
#include "executor/layers/device/attention_operands.h"

namespace plumb { inline namespace executor {

SliceAttention::SliceAttention(const AttentionSize& size, std::int64_t first_sink, const DeviceSeat& seat,
                               std::int64_t element_bytes, DeviceLayerBytes& bytes)
    : size_(size),
      first_sink_(first_sink),
      whole_(seat.sequence),
      tokens_(seat.slice),
      element_bytes_(element_bytes),
      kept_at_(bytes.sequences) {
  const std::int64_t elements = size.batch * whole_ * key_columns();
  bytes.sequences += aligned_bytes(elements * element_bytes);
  bytes.sequence_gradients = aligned_bytes(elements * std::int64_t{sizeof(float)});
}

AttentionOperands SliceAttention::operands(const StepCall& of, const AttentionSize& size) const {
  AttentionSize whole = size;
  whole.sequence = whole_;
  AttentionOperands operands =
      operands_of(of, block_of_slice({.size = whole, .first = tokens_.first, .count = tokens_.count}), first_sink_);
  operands.keys_values = kept(of);
  return operands;
}

void SliceAttention::enqueue(const StepCall& of, const AttentionSize& size) const {
  if (of.is_forward()) return forward(of, size);
  backward(of, size);
}

void SliceAttention::forward(const StepCall& of, const AttentionSize& size) const {
  const std::int64_t width = query_columns() + key_columns();
  for_each_sequence([&](std::int64_t own, std::int64_t whole) {
    of.kernels().copy_columns(kept(of) + whole * key_columns() * element_bytes_, key_columns(),
                              of.read(0) + (own * width + query_columns()) * element_bytes_, width,
                              {tokens_.count, key_columns()});
  });
  of.kernels().attention_forward(of.written(0), nullptr, of.floats_written(1), operands(of, size));
}

void SliceAttention::backward(const StepCall& of, const AttentionSize& size) const {
  const AttentionGradients gradients(of);
  const std::int64_t width = query_columns() + key_columns();
  of.kernels().attention_backward(gradients.dqkv, of.call.sequence_gradients, nullptr, gradients.products,
                                  gradients.doutput, gradients.output, gradients.log_sum_exp, operands(of, size));
  for_each_sequence([&](std::int64_t own, std::int64_t whole) {
    of.kernels().narrow_columns(gradients.dqkv + (own * width + query_columns()) * element_bytes_, width,
                                of.call.sequence_gradients + whole * key_columns(), {tokens_.count, key_columns()});
  });
}

}}  // namespace plumb::executor
