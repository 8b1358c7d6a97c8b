#pragma once
// The sizes of a decoder block on one of the ranks that share it.

#include <algorithm>
#include <cstdint>

#include "kernels/layer/kind_parts.h"

namespace plumb { inline namespace kernels {

/// A transformer layer's sizes on one tensor-parallel rank.
struct TransformerShare {
  std::int64_t heads;        // a/t
  std::int64_t kv_heads;     // k/t, at least 1
  std::int64_t query_width;  // d a/t
  std::int64_t qkv_width;    // d (a + 2k)/t
  std::int64_t ffn;          // f/t
  std::int64_t up_width;     // 2f/t if gated, else f/t
};

inline TransformerShare share_of(const TransformerLayer& layer, int tensor_parallel) {
  const std::int64_t heads = share(layer.heads, tensor_parallel);
  const std::int64_t kv_heads = std::max<std::int64_t>(1, share(layer.kv_heads, tensor_parallel));
  const std::int64_t ffn = share(layer.ffn, tensor_parallel);
  return {.heads = heads,
          .kv_heads = kv_heads,
          .query_width = heads * layer.head_size,
          .qkv_width = (heads + 2 * kv_heads) * layer.head_size,
          .ffn = ffn,
          .up_width = up_products(layer) * ffn};
}

}}  // namespace plumb::kernels
