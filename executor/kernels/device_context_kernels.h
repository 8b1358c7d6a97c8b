#pragma once
// The GPU kernels for attention (executor/layers/device/attention_step.h), also in a context group (ring_attention.h,
// head_exchange.h) and of slices (slice_attention.h), beyond those of device_kernels.h. Symbols: b sequences, S tokens
// of each sequence that a rank has; a heads, k kv heads and d channels a head of this tensor rank.

#include <cstdint>

#include "kernels/cpu/latent_heads.h"
#include "kernels/cpu/norm.h"
#include "kernels/simt/attention/attention_view.h"
#include "kernels/simt/attention/exchange_heads.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace executor {

/// A rank's queries, and the keys and values that they attend to. Stored: qkv [b*S, (a+2k)*d]; keys_values [b*K, 2k*d],
/// or null for those in qkv.
struct AttentionOperands {
  const void* qkv = nullptr;
  const void* keys_values = nullptr;
  AttentionBlock block;
  const StepNumbers* numbers = nullptr;  ///< the replay that draws dropout's mask; null: its key's
  /// [a] scores that join each row's softmax in its last block, and their gradients, which that block's backward adds to
  /// once; null: none
  const float* sinks = nullptr;
  float* dsinks = nullptr;
};

class DeviceContextKernels {
 public:
  virtual ~DeviceContextKernels() = default;

  /// Cut rows into a block of each member's heads, and the reverse. blocks: [members, T, width / members], rows: [T,
  /// width], both stored
  virtual void split_heads(void* blocks, const void* rows, const HeadShares& size) = 0;
  virtual void join_heads(void* rows, const void* blocks, const HeadShares& size) = 0;
  /// Exchanges rows and columns of stretches. to: [columns, rows, elements], from: [rows, columns, elements], both
  /// stored
  virtual void transpose_blocks(void* to, const void* from, const BlockMatrix& size) = 0;

  /// Writes columns of stored rows of `to_width` channels, rounded from fp32. from: [R, C]
  virtual void narrow_columns(void* to, std::int64_t to_width, const float* from, const NormSize& size) = 0;

  /// Join each head's queries, keys and values to the rows that attention reads, and split their gradients
  /// (kernels/cpu/latent_heads.h has the shapes); all stored.
  virtual void join_latent_heads(void* qkv, const void* queries, const void* shared, const void* keys_values,
                                 const LatentHeads& size) = 0;
  virtual void split_latent_heads(void* dqueries, void* dshared, void* dkeys_values, const void* dqkv,
                                  const LatentHeads& size) = 0;

  /// Computes attention, or adds a block of a ring to sums [b*S, a*d], fp32, and to log_sum_exp [b, a, S]. output:
  /// stored [b*S, a*d], or null before the last block; sums may be null where the first block is the last.
  virtual void attention_forward(void* output, float* sums, float* log_sum_exp, const AttentionOperands& of) = 0;
  /// Adds to sums, as the forward does, and writes the queries' columns of dqkv, stored [b*S, (a+2k)*d], which is null
  /// before the last block. Keys and values in qkv have theirs written too. The gradients of others are added to
  /// `gradients` [b*K, 2k*d], fp32. products: fp32 scratch [b, a, S]
  virtual void attention_backward(void* dqkv, float* gradients, float* sums, float* products, const void* doutput,
                                  const void* output, const float* log_sum_exp, const AttentionOperands& of) = 0;
};

}}  // namespace plumb::executor
