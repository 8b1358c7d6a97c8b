#pragma once
// A block's attention on a device where a micro-batch runs in slices of its sequences (Seq1F1B: Sun et al. 2024). The
// keys and values of the slices so far are kept by sequence, from the first F to the last I. Their gradients from later
// slices are kept from the first I on.

#include <cstddef>
#include <cstdint>

#include "executor/device/layers/attention_gradients.h"
#include "executor/device/layers/device_layer.h"

namespace plumb { inline namespace executor {

class DeviceSliceAttention {
 public:
  /// `size` is that of the slice, `tokens.count` tokens of each sequence. It adds the bytes that sequences keep to
  /// `bytes`.
  DeviceSliceAttention(const AttentionSize& size, std::int64_t whole_sequence, const TokenRange& tokens,
                       std::int64_t element_bytes, DeviceLayerBytes& bytes);

  /// `size` is the constructor's, with the micro-batch's dropout. qkv: [b*count, (a+2k)*d], output: [b*count, a*d],
  /// log_sum_exp: [b, a, count]
  void forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
               const std::byte* qkv) const;

  /// The last slice comes first: before a slice's backward, later slices have added to the gradients of its keys and
  /// values.
  void backward(const DeviceLayerCall& call, const AttentionSize& size, const AttentionGradients& of) const;

 private:
  std::byte* kept(const DeviceLayerCall& call) const { return call.sequences + kept_at_; }
  SliceOperands operands(const DeviceLayerCall& call, const AttentionSize& size, const std::byte* qkv) const;

  std::int64_t query_columns() const { return size_.heads * size_.head_size; }
  std::int64_t key_columns() const { return 2 * size_.kv_heads * size_.head_size; }
  /// Calls visit(row of the slice, row of the sequences) with the first row of each sequence.
  template <class Visit>
  void for_each_sequence(Visit visit) const {
    for (std::int64_t i = 0; i < size_.batch; ++i) visit(i * tokens_.count, i * whole_ + tokens_.first);
  }

  AttentionSize size_;
  std::int64_t whole_;  // s
  TokenRange tokens_;
  std::int64_t element_bytes_;
  std::int64_t kept_at_;  // offset in bytes among what the layer keeps of sequences, [b*s, 2k*d]
};

}}  // namespace plumb::executor
