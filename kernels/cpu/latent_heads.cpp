#include "kernels/cpu/latent_heads.h"

#include <algorithm>

namespace plumb { inline namespace kernels {
namespace {

/// Calls visit(key's first column of a joined row, value's, first column among keys and values) for each head.
template <class Visit>
void for_each_head(const LatentHeads& size, Visit visit) {
  const std::int64_t queries = size.heads * size.head_size;
  for (std::int64_t head = 0; head < size.heads; ++head)
    visit(queries + head * size.head_size, 2 * queries + head * size.value_size, head * size.key_value_size());
}

std::int64_t joined_width(const LatentHeads& size) {
  return size.heads * (2 * size.head_size + size.value_size);
}

}  // namespace

void join_latent_heads(float* qkv, const float* queries, const float* shared, const float* keys_values,
                       const LatentHeads& size) {
  const std::int64_t query_width = size.heads * size.head_size, own = size.head_size - size.shared;
  for (std::int64_t row = 0; row < size.rows; ++row) {
    std::copy_n(queries, query_width, qkv);
    for_each_head(size, [&](std::int64_t key, std::int64_t value, std::int64_t from) {
      std::copy_n(keys_values + from, own, qkv + key);
      std::copy_n(shared, size.shared, qkv + key + own);
      std::copy_n(keys_values + from + own, size.value_size, qkv + value);
    });
    queries += query_width;
    shared += size.shared;
    keys_values += size.heads * size.key_value_size();
    qkv += joined_width(size);
  }
}

void split_latent_heads(float* dqueries, float* dshared, float* dkeys_values, const float* dqkv,
                        const LatentHeads& size) {
  const std::int64_t query_width = size.heads * size.head_size, own = size.head_size - size.shared;
  for (std::int64_t row = 0; row < size.rows; ++row) {
    std::copy_n(dqkv, query_width, dqueries);
    std::fill_n(dshared, size.shared, 0.0F);
    for_each_head(size, [&](std::int64_t key, std::int64_t value, std::int64_t to) {
      std::copy_n(dqkv + key, own, dkeys_values + to);
      for (std::int64_t c = 0; c < size.shared; ++c) dshared[c] += dqkv[key + own + c];
      std::copy_n(dqkv + value, size.value_size, dkeys_values + to + own);
    });
    dqueries += query_width;
    dshared += size.shared;
    dkeys_values += size.heads * size.key_value_size();
    dqkv += joined_width(size);
  }
}

}}  // namespace plumb::kernels
