#pragma once
// A block's attention on a device where the keys and values of a context group go round a ring
// (executor/layers/host/ring_attention.h has the shapes). Where sequences come in slices, the group shares each slice
// by itself, and a rank keeps its tokens of the slices so far.

#include <cstddef>
#include <cstdint>

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

class RingAttention {
 public:
  /// `size` is that of the tokens on this rank, S of each sequence. Adds the bytes that slices keep to `bytes`.
  RingAttention(const AttentionSize& size, const DeviceSeat& seat, std::int64_t element_bytes, DeviceLayerBytes& bytes);

  /// Enqueues a step of attention. `size` is the constructor's, with the micro-batch's dropout.
  void enqueue(const StepCall& of, const AttentionSize& size) const;

 private:
  /// The rows of the block that belong to one slice.
  struct Piece {
    std::int64_t first_row = 0;  // row of each sequence
    bool is_last = false;
    AttentionBlock block;
  };
  /// The memory of a step behind its two results: blocks [b*R, 2k*d], sums [b*S, a*d] in fp32; in the backward also the
  /// gradients of both blocks, in fp32.
  struct Room {
    std::byte *outgoing, *incoming;
    float* sums;
  };
  static Room room_of(const StepCall& of);

  std::int64_t rows() const { return size_.batch * size_.sequence; }
  std::int64_t query_columns() const { return size_.query_width(); }
  std::int64_t key_columns() const { return size_.key_value_width(); }
  std::int64_t width() const { return query_columns() + key_columns(); }
  /// Returns R, the tokens of each sequence in a block that goes round, including those of earlier slices.
  std::int64_t block_rows() const { return before_ + size_.sequence; }
  std::int64_t block_elements() const { return size_.batch * block_rows() * key_columns(); }

  template <class Visit>
  void for_each_piece(const AttentionSize& size, int step, Visit visit) const;
  AttentionOperands operands_in(const StepCall& of, const Piece& piece, const std::byte* keys_values) const;
  void keep(const StepCall& of) const;
  template <class Attend>
  void pass_round(const StepCall& of, Attend attend) const;
  void forward(const StepCall& of, const AttentionSize& size) const;
  void backward(const StepCall& of, const AttentionSize& size) const;
  void write_gradients(const StepCall& of, std::byte* dqkv, const float* gradients) const;

  AttentionSize size_;
  DeviceSeat seat_;
  std::int64_t before_;  // tokens on this rank of each sequence's earlier slices
  std::int64_t kept_;    // tokens on this rank of all its slices
  std::int64_t element_bytes_;
  std::int64_t kept_at_ = 0;  // offset in bytes among what the layer keeps of sequences, [b*kept, 2k*d]
};

}}  // namespace plumb::executor
