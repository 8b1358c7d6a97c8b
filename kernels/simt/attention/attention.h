#pragma once
// Causal attention with grouped queries and an optional window on a GPU, without an s^2 tensor
// (kernels/cpu/attention/attention.h has shapes and layout). The softmax runs online over tiles of as many keys as a
// block has lanes (Milakov and Gimelshein 2018; Dao et al. 2022), and only the log-sum-exp of the probabilities is
// kept. The backward has two passes, one over keys for the queries' gradients and one over queries for the keys' and
// values' gradients, so that no two blocks add to the same element.
//
// A block takes a row (of one head). Its lanes divide the tile's keys for the scores, then the channels for the sums.
// All products are in fp32 on the vector units, which is slow but right for every size up to kLargestHead.

#include "kernels/cpu/attention/attention.h"
#include "kernels/simt/dropout.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

inline constexpr int kLargestHead = 256;
inline constexpr int kFewestAttentionLanes = 32;  ///< for the largest head; head_size / 8 for smaller ones

/// Returns the channels of a head that a lane has room for: the largest head's over the fewest lanes, which is 8. A
/// Thread whose block may have fewer lanes says so by kFewestLanes (tests/executor/device/lone_thread.h).
template <class Thread>
PLUMB_SIMT constexpr int channels_of_lane() {
  if constexpr (requires { Thread::kFewestLanes; })
    return kLargestHead / Thread::kFewestLanes;
  else
    return kLargestHead / kFewestAttentionLanes;
}

/// The layout of q, k and v in [b*s, (a+2k)*d]: where rows and heads begin.
struct AttentionRows {
  AttentionSize size;

  PLUMB_SIMT std::int64_t width() const { return (size.heads + 2 * size.kv_heads) * size.head_size; }
  PLUMB_SIMT std::int64_t kv_head(std::int64_t head) const { return head / (size.heads / size.kv_heads); }
  PLUMB_SIMT std::int64_t query(std::int64_t row, std::int64_t head) const {
    return row * width() + head * size.head_size;
  }
  PLUMB_SIMT std::int64_t key(std::int64_t row, std::int64_t kv) const {
    return row * width() + (size.heads + kv) * size.head_size;
  }
  PLUMB_SIMT std::int64_t value(std::int64_t row, std::int64_t kv) const {
    return row * width() + (size.heads + size.kv_heads + kv) * size.head_size;
  }
  PLUMB_SIMT std::int64_t output(std::int64_t row, std::int64_t head) const {
    return (row * size.heads + head) * size.head_size;
  }
  /// Returns an element of [b, a, s].
  PLUMB_SIMT std::int64_t statistic(std::int64_t batch, std::int64_t head, std::int64_t position) const {
    return (batch * size.heads + head) * size.sequence + position;
  }
  /// Return the first key that a query sees, and the query behind the last one that sees a key.
  PLUMB_SIMT std::int64_t first_key(std::int64_t query) const {
    return size.window > 0 && query >= size.window ? query - size.window + 1 : 0;
  }
  PLUMB_SIMT std::int64_t queries_end(std::int64_t key) const {
    return size.window > 0 && key + size.window < size.sequence ? key + size.window : size.sequence;
  }
  PLUMB_SIMT float scale() const { return 1.0F / sqrtf(static_cast<float>(size.head_size)); }
};

template <class S>
PLUMB_SIMT float dot(const S* a, const S* b, std::int64_t elements) {
  float sum = 0;
  for (std::int64_t c = 0; c < elements; ++c) sum += widened(a[c]) * widened(b[c]);
  return sum;
}

/// Calls visit(batch, head, position) for each row of `heads` heads that this block takes.
template <class Thread, class Visit>
PLUMB_SIMT void for_each_attention_row(const Thread& thread, const AttentionSize& size, std::int64_t heads,
                                       const Visit& visit) {
  for (std::int64_t item = thread.block(); item < size.batch * heads * size.sequence; item += thread.blocks())
    visit(item / size.sequence / heads, item / size.sequence % heads, item % size.sequence);
}

/// sums := shrink * sums + the sum over the tile's rows of weight * row(i)[c], for this lane's channels. `weight`
/// belongs to this lane's row of the tile, which has `count` rows. Every lane must call it.
template <class Thread, class Row>
PLUMB_SIMT void add_weighted_rows(const Thread& thread, float* sums, float shrink, float weight, std::int64_t count,
                                  std::int64_t channels, const Row& row) {
  float* shared = thread.shared();
  shared[thread.lane()] = weight;
  thread.sync();
  int slot = 0;
  for (std::int64_t c = thread.lane(); c < channels; c += thread.lanes(), ++slot) {
    float sum = sums[slot] * shrink;
    for (std::int64_t i = 0; i < count; ++i) sum += shared[i] * widened(row(i)[c]);
    sums[slot] = sum;
  }
  thread.sync();  // before any lane writes there again
}

/// to[c] := scale * sums, for this lane's channels.
template <class S, class Thread>
PLUMB_SIMT void store_channels(const Thread& thread, S* to, const float* sums, float scale, std::int64_t channels) {
  int slot = 0;
  for (std::int64_t c = thread.lane(); c < channels; c += thread.lanes(), ++slot) store(to[c], scale * sums[slot]);
}

PLUMB_SIMT std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

/// attention_forward on a GPU. Blocks take (batch, head, query) in turn. Shapes of output, log_sum_exp and qkv:
/// attention_forward's.
template <class S>
struct AttentionForward {
  S* output;
  float* log_sum_exp;
  const S* qkv;
  AttentionSize size;
  const StepNumbers* numbers = nullptr;  ///< step of dropout; null: its key's step counts

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const AttentionRows rows{size};
    const ProbabilityMask mask(size.dropout, numbers);
    for_each_attention_row(thread, size, size.heads, [&](std::int64_t batch, std::int64_t head, std::int64_t query) {
      const std::int64_t first_row = batch * size.sequence;
      const std::int64_t kv = rows.kv_head(head);
      const S* q = qkv + rows.query(first_row + query, head);
      float sums[channels_of_lane<Thread>()] = {};
      float largest = -INFINITY;
      float total = 0;
      for (std::int64_t tile = rows.first_key(query); tile <= query; tile += thread.lanes()) {
        const std::int64_t key = tile + thread.lane();
        float score = -INFINITY;
        if (key <= query) score = rows.scale() * dot(q, qkv + rows.key(first_row + key, kv), size.head_size);
        const float most = Larger{}(largest, combine_over_block(thread, score, Larger{}));
        const float shrink = expf(largest - most);  // 0 in the first tile
        const float weight = key <= query ? expf(score - most) : 0.0F;
        total = total * shrink + combine_over_block(thread, weight, Add{});
        largest = most;
        const float kept = key <= query ? weight * mask.factor(batch, head, query, key) : 0.0F;
        add_weighted_rows(thread, sums, shrink, kept, smaller(query + 1 - tile, thread.lanes()), size.head_size,
                          [&](std::int64_t i) { return qkv + rows.value(first_row + tile + i, kv); });
      }
      store_channels(thread, output + rows.output(first_row + query, head), sums, 1 / total, size.head_size);
      if (thread.lane() == 0) log_sum_exp[rows.statistic(batch, head, query)] = largest + logf(total);
    });
  }
};

/// Writes the queries' columns of dqkv, and products [b, a, s]: the inner product of each output row and its gradient,
/// which the pass for keys and values reads. doutput, output: [b*s, a*d]
template <class S>
struct AttentionQueryGradient {
  S* dqkv;
  float* products;
  const S* doutput;
  const S* qkv;
  const S* output;
  const float* log_sum_exp;
  AttentionSize size;
  const StepNumbers* numbers = nullptr;  ///< step of dropout, as in the forward

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const AttentionRows rows{size};
    const ProbabilityMask mask(size.dropout, numbers);
    for_each_attention_row(thread, size, size.heads, [&](std::int64_t batch, std::int64_t head, std::int64_t query) {
      const std::int64_t first_row = batch * size.sequence;
      const std::int64_t kv = rows.kv_head(head);
      const S* q = qkv + rows.query(first_row + query, head);
      const S* gradient = doutput + rows.output(first_row + query, head);
      const S* own_output = output + rows.output(first_row + query, head);
      const float product = sum_over_row(thread, size.head_size,
                                         [&](std::int64_t c) { return widened(gradient[c]) * widened(own_output[c]); });
      const std::int64_t statistic = rows.statistic(batch, head, query);
      if (thread.lane() == 0) products[statistic] = product;
      float sums[channels_of_lane<Thread>()] = {};
      for (std::int64_t tile = rows.first_key(query); tile <= query; tile += thread.lanes()) {
        const std::int64_t key = tile + thread.lane();
        float of_score = 0;
        if (key <= query) {
          const std::int64_t row = first_row + key;
          const float score = rows.scale() * dot(q, qkv + rows.key(row, kv), size.head_size);
          const float probability = expf(score - log_sum_exp[statistic]);
          const float of_probability = dot(gradient, qkv + rows.value(row, kv), size.head_size);
          of_score = probability * (mask.factor(batch, head, query, key) * of_probability - product);
        }
        add_weighted_rows(thread, sums, 1, of_score, smaller(query + 1 - tile, thread.lanes()), size.head_size,
                          [&](std::int64_t i) { return qkv + rows.key(first_row + tile + i, kv); });
      }
      store_channels(thread, dqkv + rows.query(first_row + query, head), sums, rows.scale(), size.head_size);
    });
  }
};

/// Writes the keys' and values' columns of dqkv, after AttentionQueryGradient has run. Blocks take (batch, kv head,
/// key) in turn; the queries of a group's heads are added in their order.
template <class S>
struct AttentionKeyValueGradient {
  S* dqkv;
  const float* products;
  const S* doutput;
  const S* qkv;
  const float* log_sum_exp;
  AttentionSize size;
  const StepNumbers* numbers = nullptr;  ///< step of dropout, as in the forward

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const AttentionRows rows{size};
    const ProbabilityMask mask(size.dropout, numbers);
    const std::int64_t group = size.heads / size.kv_heads;
    for_each_attention_row(thread, size, size.kv_heads, [&](std::int64_t batch, std::int64_t kv, std::int64_t key) {
      const std::int64_t first_row = batch * size.sequence;
      const std::int64_t end = rows.queries_end(key);
      const S* k = qkv + rows.key(first_row + key, kv);
      const S* v = qkv + rows.value(first_row + key, kv);
      float to_key[channels_of_lane<Thread>()] = {};
      float to_value[channels_of_lane<Thread>()] = {};
      for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
        for (std::int64_t tile = key; tile < end; tile += thread.lanes()) {
          const std::int64_t query = tile + thread.lane();
          float probability = 0;
          float of_score = 0;
          if (query < end) {
            const std::int64_t row = first_row + query;
            const std::int64_t statistic = rows.statistic(batch, head, query);
            const float score = rows.scale() * dot(qkv + rows.query(row, head), k, size.head_size);
            probability = expf(score - log_sum_exp[statistic]);
            const float factor = mask.factor(batch, head, query, key);
            const float of_probability = dot(doutput + rows.output(row, head), v, size.head_size);
            of_score = probability * (factor * of_probability - products[statistic]);
            probability *= factor;
          }
          const std::int64_t count = smaller(end - tile, thread.lanes());
          add_weighted_rows(thread, to_value, 1, probability, count, size.head_size,
                            [&](std::int64_t i) { return doutput + rows.output(first_row + tile + i, head); });
          add_weighted_rows(thread, to_key, 1, of_score, count, size.head_size,
                            [&](std::int64_t i) { return qkv + rows.query(first_row + tile + i, head); });
        }
      }
      store_channels(thread, dqkv + rows.key(first_row + key, kv), to_key, rows.scale(), size.head_size);
      store_channels(thread, dqkv + rows.value(first_row + key, kv), to_value, 1, size.head_size);
    });
  }
};

}}}  // namespace plumb::kernels::simt
