#pragma once
// A block's attention on a device whose context group shares the tokens (executor/cpu/layers/context_attention.h has
// the shapes): by an all-to-all of heads around attention of whole sequences (Ulysses), or by keys and values that go
// round a ring. Where sequences come in slices, the group shares each slice by itself; the slices then keep a rank's
// tokens, or heads, of whole sequences.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "executor/device/layers/attention_gradients.h"
#include "executor/device/layers/device_layer.h"
#include "executor/device/layers/slice_attention.h"

namespace plumb { inline namespace executor {

class DeviceContextAttention {
 public:
  /// `size` is that of the tokens on this rank, S of each sequence. It places its workspace behind the totals, and
  /// nothing before is its own. It adds the bytes that slices keep of sequences to `bytes`.
  DeviceContextAttention(const AttentionSize& size, const DeviceTensorShare& share, std::int64_t element_bytes,
                         std::int64_t& forward_workspace, std::int64_t& backward_workspace, DeviceLayerBytes& bytes);

  /// `size` is the constructor's, with the micro-batch's dropout. qkv: [b*S, (a+2k)*d]; Ulysses replaces it by that of
  /// whole sequences, [b*s, (a+2k)/n*d], which the backward reads. output: [b*S, a*d]
  void forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
               std::byte* qkv) const;

  void backward(const DeviceLayerCall& call, const AttentionSize& size, const AttentionGradients& of) const;

 private:
  /// Memory of a pass for the values that are sent and received, and for the results of one of the two methods.
  struct Room {
    DeviceTensor outgoing, incoming;  // Ulysses: [b*S, (a+2k)*d]; ring: [b*R, 2k*d]
    DeviceTensor whole_output;        // Ulysses: [b*s, a/n*d]
    DeviceTensor sums;                // ring: [b*S, a*d], fp32
  };
  Room place_room(std::int64_t& total) const;

  std::int64_t rows() const { return size_.batch * size_.sequence; }
  std::int64_t query_columns() const { return size_.heads * size_.head_size; }
  std::int64_t key_columns() const { return 2 * size_.kv_heads * size_.head_size; }
  /// Returns R, the tokens of each sequence in a block that goes round, including those of earlier slices.
  std::int64_t block_rows() const { return before_ + size_.sequence; }
  std::int64_t block_elements() const { return size_.batch * block_rows() * key_columns(); }
  bool is_sliced() const { return share_.is_sliced(); }

  // Functions of Ulysses.
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

  // Functions of the ring.
  /// The rows of the block that belong to one slice.
  struct Piece {
    std::int64_t first_row = 0;  // row of each sequence
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
  std::int64_t before_;       // tokens on this rank of each sequence's earlier slices
  std::int64_t kept_;         // tokens on this rank of all its slices
  std::int64_t kept_at_ = 0;  // ring: offset in bytes among what the layer keeps of sequences, [b*kept, 2k*d]
  std::int64_t element_bytes_;
  std::optional<DeviceSliceAttention> of_heads_;  // Ulysses with slices
  Room forward_, backward_;
  DeviceTensor whole_doutput_;         // Ulysses: [b*s, a/n*d]
  DeviceTensor whole_dqkv_;            // [b*s, (a+2k)/n*d]
  DeviceTensor gradients_, arriving_;  // ring: [b*R, 2k*d], fp32
};

}}  // namespace plumb::executor
