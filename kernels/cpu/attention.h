#pragma once
// Causal attention with grouped queries and an optional sliding window, without an s^2 tensor: blocks of query rows
// against all the keys they see, softmax in one go, and of the probabilities only the log-sum-exp is kept; the backward
// recomputes them (the idea of Dao et al. 2022, for a cache that holds a block of whole rows).
//
// Heads lie side by side in a token's row: a query heads, then k key heads, then k value heads, each d wide. Query head
// i reads key and value head i / (a/k).

#include <cstdint>

namespace plumb {

/// The shape of KernelKind kAttentionForward and kAttentionBackward.
struct AttentionSize {
  std::int64_t batch = 0;      ///< b
  std::int64_t sequence = 0;   ///< s
  std::int64_t heads = 0;      ///< a
  std::int64_t kv_heads = 0;   ///< k, divides a
  std::int64_t head_size = 0;  ///< d
  std::int64_t window = 0;     ///< keys a query sees, itself included; 0: all of its past
};

/// Elements of the scratch that both functions need.
std::int64_t attention_scratch_elements(const AttentionSize& size);

/// output = softmax(Q K^T / sqrt(d)) V under the mask; log_sum_exp of each row's masked scores. KernelKind
/// kAttentionForward. qkv: [b*s, (a+2k)*d], output: [b*s, a*d], log_sum_exp: [b, a, s], scratch:
/// [attention_scratch_elements]
void attention_forward(float* output, float* log_sum_exp, const float* qkv, const AttentionSize& size, float* scratch);

/// The gradients of Q, K and V. KernelKind kAttentionBackward.
/// dqkv: [b*s, (a+2k)*d] (overwritten), doutput, output: [b*s, a*d], qkv, log_sum_exp, scratch: as above.
void attention_backward(float* dqkv, const float* doutput, const float* qkv, const float* output,
                        const float* log_sum_exp, const AttentionSize& size, float* scratch);

}  // namespace plumb
