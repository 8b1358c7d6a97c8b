#pragma once
// Queries, keys and values of multi-head latent attention (DeepSeek-AI 2024, 2405.04434), joined to the row that
// attention reads. Keys end with channels that all heads share. KernelKind kJoinHeads and kSplitHeads.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct LatentHeads {
  std::int64_t rows = 0;        ///< T
  std::int64_t heads = 0;       ///< a
  std::int64_t head_size = 0;   ///< d channels of a head's query and of its key
  std::int64_t shared = 0;      ///< r of these, the last of a key, that all heads share
  std::int64_t value_size = 0;  ///< w channels of a head's value

  /// Returns the columns that a head has among the keys and values before they are joined.
  constexpr std::int64_t key_value_size() const { return head_size - shared + value_size; }
};

/// qkv: [T, a*d + a*d + a*w]; queries: [T, a*d]; shared: [T, r]; keys_values: [T, a*(d-r+w)], a head's key before its
/// value
void join_latent_heads(float* qkv, const float* queries, const float* shared, const float* keys_values,
                       const LatentHeads& size);

/// Writes the gradients of join_latent_heads()'s inputs; that of the shared channels is the sum over the heads.
void split_latent_heads(float* dqueries, float* dshared, float* dkeys_values, const float* dqkv,
                        const LatentHeads& size);

}}  // namespace plumb::kernels
