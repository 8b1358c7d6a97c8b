#pragma once
// Causal attention with grouped queries and an optional sliding window, without an s^2 tensor. A block of query rows
// meets all the keys that it sees, and its softmax is taken in one go. Only the log-sum-exp of the probabilities is
// kept; the backward recomputes them (the idea of Dao et al. 2022, for a cache that holds a block of whole rows).
//
// Heads lie side by side in a token's row: a query heads, then k key heads, then k value heads, each d wide. Query head
// i reads key and value head i / (a/k). In latent attention values have a width of their own; shapes below that do not
// say so are of values as wide as keys.

#include <cstdint>

#include "kernels/cpu/dropout.h"

namespace plumb { inline namespace kernels {

/// The shape of KernelKind kAttentionForward and kAttentionBackward.
struct AttentionSize {
  std::int64_t batch = 0;       ///< b
  std::int64_t sequence = 0;    ///< s
  std::int64_t heads = 0;       ///< a
  std::int64_t kv_heads = 0;    ///< k, divides a
  std::int64_t head_size = 0;   ///< d
  std::int64_t window = 0;      ///< keys that a query sees, itself included; 0: all of its past
  AttentionDropout dropout;     ///< dropout of the probabilities; not a size
  std::int64_t value_size = 0;  ///< channels of a head's values; 0: d
  float softcap = 0;            ///< bound of the scores (kernels/cpu/softcap.h); 0: none

  constexpr std::int64_t value_channels() const { return value_size > 0 ? value_size : head_size; }
  /// Return the columns of queries, of keys with values, and of the output.
  constexpr std::int64_t query_width() const { return heads * head_size; }
  constexpr std::int64_t key_value_width() const { return kv_heads * (head_size + value_channels()); }
  constexpr std::int64_t output_width() const { return heads * value_channels(); }
};

/// Returns the elements of the scratch that both functions need.
std::int64_t attention_scratch_elements(const AttentionSize& size);

/// output = softmax(Q K^T / sqrt(d)) V under the mask; log_sum_exp is that of each row's masked scores. KernelKind
/// kAttentionForward. qkv: [b*s, (a+2k)*d], output: [b*s, a*d], log_sum_exp: [b, a, s], scratch:
/// [attention_scratch_elements]
void attention_forward(float* output, float* log_sum_exp, const float* qkv, const AttentionSize& size, float* scratch);

/// Writes the gradients of Q, K and V. KernelKind kAttentionBackward. dqkv: [b*s, (a+2k)*d] (overwritten), doutput,
/// output: [b*s, a*d]; qkv, log_sum_exp, scratch: the forward's.
void attention_backward(float* dqkv, const float* doutput, const float* qkv, const float* output,
                        const float* log_sum_exp, const AttentionSize& size, float* scratch);

/// A slice of every sequence. Its queries see the keys and values up to their own position, in this slice and in
/// earlier ones.
struct AttentionSlice {
  AttentionSize size;      ///< the size of whole sequences
  std::int64_t first = 0;  ///< tokens of a sequence ahead of the slice
  std::int64_t count = 0;  ///< tokens of the slice
};

/// attention_forward for the queries of one slice (Seq1F1B: Sun et al. 2024). qkv: [b*count, (a+2k)*d], whose queries
/// are read; keys_values: [b*s, 2k*d], keys, then values, filled in up to the slice's end; output: [b*count, a*d],
/// log_sum_exp: [b, a, count], scratch: [attention_scratch_elements of the whole]
void attention_slice_forward(float* output, float* log_sum_exp, const float* qkv, const float* keys_values,
                             const AttentionSlice& slice, float* scratch);

/// attention_backward for the queries of one slice. It writes the queries' columns of dqkv [b*count, (a+2k)*d] and adds
/// to dkeys_values [b*s, 2k*d] the gradients of every key and value that these queries saw. doutput, output: [b*count,
/// a*d]
void attention_slice_backward(float* dqkv, float* dkeys_values, const float* doutput, const float* qkv,
                              const float* keys_values, const float* output, const float* log_sum_exp,
                              const AttentionSlice& slice, float* scratch);

/// Copies the key and value columns of a slice's qkv [b*count, (a+2k)*d] to their rows in keys_values [b*s, 2k*d], or
/// back.
void keep_keys_values(float* keys_values, const float* qkv, const AttentionSlice& slice);
void take_keys_values(float* qkv, const float* keys_values, const AttentionSlice& slice);

}}  // namespace plumb::kernels
