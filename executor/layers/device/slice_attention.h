#pragma once
// A block's attention on a device where a micro-batch runs in slices of its sequences (Seq1F1B: Sun et al. 2024). The
// keys and values of the slices so far are kept by sequence, from the first F to the last I. Their gradients from later
// slices are kept from the first I on.

#include <cstddef>
#include <cstdint>

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

class SliceAttention {
 public:
  /// `size` is that of the slice, and `first_sink` the number of its first head among the tensor rank's. Adds the bytes
  /// that sequences keep to `bytes`.
  SliceAttention(const AttentionSize& size, std::int64_t first_sink, const DeviceSeat& seat, std::int64_t element_bytes,
                 DeviceLayerBytes& bytes);

  /// Enqueues a step of attention. `size` is the constructor's, with the micro-batch's dropout. In the backward the
  /// last slice comes first: before a slice's turn, later slices have added to the gradients of its keys and values.
  void enqueue(const StepCall& of, const AttentionSize& size) const;

 private:
  void forward(const StepCall& of, const AttentionSize& size) const;
  void backward(const StepCall& of, const AttentionSize& size) const;
  std::byte* kept(const StepCall& of) const { return of.call.sequences + kept_at_; }
  AttentionOperands operands(const StepCall& of, const AttentionSize& size) const;

  std::int64_t query_columns() const { return size_.query_width(); }
  std::int64_t key_columns() const { return size_.key_value_width(); }
  /// Calls visit(row of the slice, row of the sequences) with the first row of each sequence.
  template <class Visit>
  void for_each_sequence(Visit visit) const {
    for (std::int64_t i = 0; i < size_.batch; ++i) visit(i * tokens_.count, i * whole_ + tokens_.first);
  }

  AttentionSize size_;
  std::int64_t first_sink_;
  std::int64_t whole_;  // s
  TokenRange tokens_;
  std::int64_t element_bytes_;
  std::int64_t kept_at_;  // offset in bytes among what the layer keeps of sequences, [b*s, 2k*d]
};

}}  // namespace plumb::executor
