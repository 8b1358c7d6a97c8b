#pragma once
// The GPU kernels for the attention of a context group (executor/device/layers/ring_attention.h, head_exchange.h) and of slices
// (slice_attention.h), as their layer calls them, beyond those of device_kernels.h. Symbols: b sequences, S tokens of
// each sequence that a rank has; a heads, k kv heads and d channels a head of this tensor rank.

#include <cstdint>

#include "kernels/cpu/norm.h"
#include "kernels/simt/attention/attention_block.h"
#include "kernels/simt/attention/exchange_heads.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace executor {

/// A rank's queries, and the block of keys and values that they attend to. Stored: qkv [b*S, (a+2k)*d], keys_values
/// [b*S, 2k*d].
struct BlockOperands {
  const void* qkv = nullptr;
  const void* keys_values = nullptr;
  AttentionBlock block;
  const StepNumbers* numbers = nullptr;  ///< step of dropout
};

/// The queries of a slice, and the keys and values of their sequences. Stored: qkv [b*count, (a+2k)*d], whose queries
/// are read, keys_values [b*s, 2k*d].
struct SliceOperands {
  const void* qkv = nullptr;
  const void* keys_values = nullptr;
  AttentionSlice slice;
  const StepNumbers* numbers = nullptr;  ///< step of dropout
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

  /// Adds a block to sums [b*S, a*d], fp32, and log_sum_exp [b, a, S]. output: stored [b*S, a*d], or null before the
  /// last block.
  virtual void attention_block_forward(void* output, float* sums, float* log_sum_exp, const BlockOperands& of) = 0;
  /// Adds to gradients [b*S, 2k*d] of the block and to sums [b*S, a*d], both fp32. dqkv: stored [b*S, (a+2k)*d], whose
  /// queries' columns get the sums, or null before the last block; products: fp32 scratch [b, a, S]
  virtual void attention_block_backward(void* dqkv, float* gradients, float* sums, float* products, const void* doutput,
                                        const void* output, const float* log_sum_exp, const BlockOperands& of) = 0;

  /// Computes the attention of a slice's queries. output: stored [b*count, a*d], log_sum_exp: [b, a, count]
  virtual void attention_slice_forward(void* output, float* log_sum_exp, const SliceOperands& of) = 0;
  /// Adds to gradients [b*s, 2k*d], fp32, those of all keys and values that the queries see. dqkv: stored [b*count,
  /// (a+2k)*d], whose queries' columns are written; products: fp32 scratch [b, a, count]
  virtual void attention_slice_backward(void* dqkv, float* gradients, float* products, const void* doutput,
                                        const void* output, const float* log_sum_exp, const SliceOperands& of) = 0;
};

}}  // namespace plumb::executor
