#pragma once
// A block's attention on a device where a context group has its tokens (executor/cpu/context_attention.h has the
// shapes): heads by all-to-all around attention of whole sequences (Ulysses), or keys and values round a ring.

#include <cstddef>
#include <cstdint>

#include "executor/device/layers/device_layer.h"

namespace plumb {

class DeviceContextAttention {
 public:
  /// size: of the tokens here, S of each sequence. Takes its workspace behind what is counted in the totals: nothing
  /// else in them is its own.
  DeviceContextAttention(const AttentionSize& size, const ContextSeat& seat, std::int64_t element_bytes,
                         std::int64_t& forward_workspace, std::int64_t& backward_workspace);

  /// size: the same, with the micro-batch's dropout. qkv: [b*S, (a+2k)*d]; with Ulysses replaced by that of whole
  /// sequences, [b*s, (a+2k)/n*d], which the backward reads. output: [b*S, a*d]
  void forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
               std::byte* qkv) const;

  struct Gradients {
    std::byte* dqkv = nullptr;  ///< [b*S, (a+2k)*d], written
    float* products = nullptr;  ///< [b, a, S], scratch
    const std::byte* doutput = nullptr;
    const std::byte* qkv = nullptr;  ///< as the forward has left it
    const std::byte* output = nullptr;
    const float* log_sum_exp = nullptr;
  };
  void backward(const DeviceLayerCall& call, const AttentionSize& size, const Gradients& of) const;

 private:
  /// What goes out and what comes in, and what one of the two makes of it, while a pass runs.
  struct Room {
    DeviceTensor outgoing, incoming;  // Ulysses: [b*S, (a+2k)*d]; ring: [b*S, 2k*d]
    DeviceTensor whole_output;        // Ulysses: [b*s, a/n*d]
    DeviceTensor sums;                // ring: [b*S, a*d], fp32
  };
  Room place_room(std::int64_t& total) const;

  std::int64_t rows() const { return size_.batch * size_.sequence; }
  std::int64_t query_columns() const { return size_.heads * size_.head_size; }
  std::int64_t key_columns() const { return 2 * size_.kv_heads * size_.head_size; }
  std::int64_t block_elements() const { return rows() * key_columns(); }

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
  void ulysses_backward(const DeviceLayerCall& call, const AttentionSize& size, const Gradients& of) const;

  // Ring.
  AttentionBlock block_of(const AttentionSize& size, int step) const;
  template <class Attend>
  void pass_round(const DeviceLayerCall& call, const Room& room, const std::byte* qkv, Attend attend) const;
  void ring_forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
                    const std::byte* qkv) const;
  void ring_backward(const DeviceLayerCall& call, const AttentionSize& size, const Gradients& of) const;

  AttentionSize size_;
  ContextSeat seat_;
  std::int64_t element_bytes_;
  Room forward_, backward_;
  DeviceTensor whole_doutput_;         // Ulysses: [b*s, a/n*d]
  DeviceTensor whole_dqkv_;            // [b*s, (a+2k)/n*d]
  DeviceTensor gradients_, arriving_;  // ring: [b*S, 2k*d], fp32
};

}  // namespace plumb
