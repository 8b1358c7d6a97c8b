#pragma once
// A block's attention on a device where a context group has its tokens (executor/cpu/layers/context_attention.h has the
// shapes): heads by all-to-all around attention of whole sequences (Ulysses), or keys and values round a ring. Of
// slices, each slice is shared by itself: what slices keep is then a rank's tokens, or heads, of whole sequences.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "executor/device/layers/attention_gradients.h"
#include "executor/device/layers/device_layer.h"
#include "executor/device/layers/slice_attention.h"

namespace plumb { inline namespace executor {

class DeviceContextAttention {
 public:
  /// size: of the tokens here, S of each sequence. Takes its workspace behind what is counted in the totals: nothing
  /// else in them is its own. Counts what slices keep of sequences in `bytes`.
  DeviceContextAttention(const AttentionSize& size, const DeviceTensorShare& share, std::int64_t element_bytes,
                         std::int64_t& forward_workspace, std::int64_t& backward_workspace, DeviceLayerBytes& bytes);

  /// size: the same, with the micro-batch's dropout. qkv: [b*S, (a+2k)*d]; with Ulysses replaced by that of whole
  /// sequences, [b*s, (a+2k)/n*d], which the backward reads. output: [b*S, a*d]
  void forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
               std::byte* qkv) const;

  void backward(const DeviceLayerCall& call, const AttentionSize& size, const AttentionGradients& of) const;

 private:
  /// What goes out and what comes in, and what one of the two makes of it, while a pass runs.
  struct Room {
    DeviceTensor outgoing, incoming;  // Ulysses: [b*S, (a+2k)*d]; ring: [b*R, 2k*d]
    DeviceTensor whole_output;        // Ulysses: [b*s, a/n*d]
    DeviceTensor sums;                // ring: [b*S, a*d], fp32
  };
  Room place_room(std::int64_t& total) const;

  std::int64_t rows() const { return size_.batch * size_.sequence; }
  std::int64_t query_columns() const { return size_.heads * size_.head_size; }
  std::int64_t key_columns() const { return 2 * size_.kv_heads * size_.head_size; }
  /// R: tokens of each sequence in a block that goes round, with those of the slices before.
  std::int64_t block_rows() const { return before_ + size_.sequence; }
  std::int64_t block_elements() const { return size_.batch * block_rows() * key_columns(); }
  bool is_sliced() const { return share_.is_sliced(); }

  // Ulysses.
  HeadShares qkv_shares() const;
  HeadShares output_shares() const;
  AttentionSize of_heads(const AttentionSize& size) const;
  void to_heads(const DeviceLayerCall& call, const Room& room, std::byte* whole, const std::byte* own,
                const HeadShares& shares) const;
  void to_tokens(const DeviceLayerCall& call, const Room& room, std::byte* own, const std::byte* whole,
                 const HeadShares& shares) const;
  void ulysses_forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
                       std::byte* qkv) const;
  void ulysses_backward(const DeviceLayerCall& call, const AttentionSize& size, const AttentionGradients& of) const;

  // Ring.
  /// Of the block's rows, those of one slice.
  struct Piece {
    std::int64_t first_row = 0;  // of each sequence
    bool is_last = false;
    AttentionBlock block;
  };
  template <class Visit>
  void for_each_piece(const AttentionSize& size, int step, Visit visit) const;
  void keep(const DeviceLayerCall& call, const std::byte* qkv) const;
  template <class Attend>
  void pass_round(const DeviceLayerCall& call, const Room& room, const std::byte* qkv, Attend attend) const;
  void ring_forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
                    const std::byte* qkv) const;
  void ring_backward(const DeviceLayerCall& call, const AttentionSize& size, const AttentionGradients& of) const;

  AttentionSize size_;
  DeviceTensorShare share_;
  ContextSeat seat_;
  std::int64_t before_;       // tokens here of each sequence's slices before
  std::int64_t kept_;         // of all its slices
  std::int64_t kept_at_ = 0;  // ring: bytes, in what the layer keeps of sequences: [b*kept, 2k*d]
  std::int64_t element_bytes_;
  std::optional<DeviceSliceAttention> of_heads_;  // Ulysses, of slices
  Room forward_, backward_;
  DeviceTensor whole_doutput_;         // Ulysses: [b*s, a/n*d]
  DeviceTensor whole_dqkv_;            // [b*s, (a+2k)/n*d]
  DeviceTensor gradients_, arriving_;  // ring: [b*R, 2k*d], fp32
};

}}  // namespace plumb::executor
