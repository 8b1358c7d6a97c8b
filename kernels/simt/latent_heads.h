#pragma once
// Heads of latent attention joined to the rows that attention reads, and split, on a GPU (kernels/cpu/latent_heads.h has
// shapes and layout).

#include "kernels/cpu/latent_heads.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// qkv: [T, a*d + a*d + a*w]; queries: [T, a*d]; shared: [T, r]; keys_values: [T, a*(d-r+w)]
template <class S>
struct JoinLatentHeads {
  S* qkv;
  const S* queries;
  const S* shared;
  const S* keys_values;
  LatentHeads size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t width = size.heads * (2 * size.head_size + size.value_size);
    for_each_element(thread, size.rows * width, [&](std::int64_t i) { qkv[i] = from(i / width, i % width); });
  }

 private:
  PLUMB_SIMT S from(std::int64_t row, std::int64_t column) const {
    const std::int64_t query_width = size.heads * size.head_size, own = size.head_size - size.shared;
    if (column < query_width) return queries[row * query_width + column];
    const bool is_key = column < 2 * query_width;
    const std::int64_t channels = is_key ? size.head_size : size.value_size;
    const std::int64_t behind = column - (is_key ? query_width : 2 * query_width), channel = behind % channels;
    if (is_key && channel >= own) return shared[row * size.shared + channel - own];
    const std::int64_t head = row * size.heads + behind / channels;
    return keys_values[head * size.key_value_size() + (is_key ? channel : own + channel)];
  }
};

/// Writes the gradients of JoinLatentHeads's inputs; that of a shared channel is the sum over the heads in their order.
template <class S>
struct SplitLatentHeads {
  S* dqueries;
  S* dshared;
  S* dkeys_values;
  const S* dqkv;
  LatentHeads size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t query_width = size.heads * size.head_size, own = size.head_size - size.shared;
    const std::int64_t kv_width = size.heads * size.key_value_size(), width = query_width + size.shared + kv_width;
    const std::int64_t joined = size.heads * (2 * size.head_size + size.value_size);
    for_each_element(thread, size.rows * width, [&](std::int64_t i) {
      const std::int64_t row = i / width;
      std::int64_t column = i % width;
      const S* from = dqkv + row * joined;
      if (column < query_width) {
        dqueries[row * query_width + column] = from[column];
        return;
      }
      column -= query_width;
      const S* keys = from + query_width;
      if (column < size.shared) {
        float sum = 0;
        for (std::int64_t head = 0; head < size.heads; ++head)
          sum += widened(keys[head * size.head_size + own + column]);
        store(dshared[row * size.shared + column], sum);
        return;
      }
      column -= size.shared;
      const std::int64_t head = column / size.key_value_size(), channel = column % size.key_value_size();
      dkeys_values[row * kv_width + column] = channel < own
                                                  ? keys[head * size.head_size + channel]
                                                  : keys[query_width + head * size.value_size + channel - own];
    });
  }
};

}}}  // namespace plumb::kernels::simt
