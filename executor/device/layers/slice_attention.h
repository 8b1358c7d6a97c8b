#pragma once
// A block's attention on a device where a micro-batch runs in slices of its sequences (Seq1F1B: Sun et al. 2024): what
// the slices so far had of keys and values is kept by sequence, from the first F to the last I, and so is, from the
// first I on, what later slices owe to them.

#include <cstddef>
#include <cstdint>

#include "executor/device/layers/attention_gradients.h"
#include "executor/device/layers/device_layer.h"

namespace plumb { inline namespace executor {

class DeviceSliceAttention {
 public:
  /// size: of the slice, `tokens.count` tokens of each sequence. Counts what sequences keep in `bytes`.
  DeviceSliceAttention(const AttentionSize& size, std::int64_t whole_sequence, const TokenRange& tokens,
                       std::int64_t element_bytes, DeviceLayerBytes& bytes);

  /// size: the same, with the micro-batch's dropout. qkv: [b*count, (a+2k)*d], output: [b*count, a*d], log_sum_exp:
  /// [b, a, count]
  void forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
               const std::byte* qkv) const;

  /// The last slice comes first: when a slice's turn comes, those behind it have added what they owe to its keys and
  /// values.
  void backward(const DeviceLayerCall& call, const AttentionSize& size, const AttentionGradients& of) const;

 private:
  std::byte* kept(const DeviceLayerCall& call) const { return call.sequences + kept_at_; }
  SliceOperands operands(const DeviceLayerCall& call, const AttentionSize& size, const std::byte* qkv) const;

  std::int64_t query_columns() const { return size_.heads * size_.head_size; }
  std::int64_t key_columns() const { return 2 * size_.kv_heads * size_.head_size; }
  /// Calls visit(row of the slice, row of the sequences) with each sequence's first.
  template <class Visit>
  void for_each_sequence(Visit visit) const {
    for (std::int64_t i = 0; i < size_.batch; ++i) visit(i * tokens_.count, i * whole_ + tokens_.first);
  }

  AttentionSize size_;
  std::int64_t whole_;  // s
  TokenRange tokens_;
  std::int64_t element_bytes_;
  std::int64_t kept_at_;  // bytes, in what the layer keeps of sequences: [b*s, 2k*d]
};

}}  // namespace plumb::executor
