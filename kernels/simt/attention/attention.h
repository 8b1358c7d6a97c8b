#pragma once
// Causal attention with grouped queries and an optional window on a GPU, without an s^2 tensor
// (kernels/cpu/attention/attention.h has shapes and layout). The softmax runs online over tiles of as many keys as a
// block has lanes (Milakov and Gimelshein 2018; Dao et al. 2022), and only the log-sum-exp of the probabilities is
// kept. The backward has two passes, one over keys for the queries' gradients and one over queries for the keys' and
// values' gradients, so that no two blocks add to the same element.
//
// A block takes a row (of one head). Its lanes divide the tile's keys for the scores, then the channels for the sums.
// All products are in fp32 on the vector units, which is slow but right for every size up to kLargestHead. Values may
// have a width w of their own; shapes below are of values as wide as keys.

#include "kernels/simt/attention/sinks.h"
#include "kernels/simt/softcap.h"

namespace plumb { inline namespace kernels { namespace simt {

inline constexpr int kLargestHead = 256;
inline constexpr int kFewestAttentionLanes = 32;  ///< for the largest head; head_size / 8 for smaller ones

/// Returns the channels of a head that a lane has room for: the largest head's over the fewest lanes, which is 8. A
/// Thread whose block may have fewer lanes says so by kFewestLanes (tests/executor/training/device/lone_thread.h).
template <class Thread>
PLUMB_SIMT constexpr int channels_of_lane() {
  if constexpr (requires { Thread::kFewestLanes; })
    return kLargestHead / Thread::kFewestLanes;
  else
    return kLargestHead / kFewestAttentionLanes;
}

template <class S>
PLUMB_SIMT float dot(const S* a, const S* b, std::int64_t elements) {
  float sum = 0;
  for (std::int64_t c = 0; c < elements; ++c) sum += widened(a[c]) * widened(b[c]);
  return sum;
}

/// Calls visit(batch, head, row) for each of `rows` rows of `heads` heads that this block takes.
template <class Thread, class Visit>
PLUMB_SIMT void for_each_attention_row(const Thread& thread, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                                       const Visit& visit) {
  for (std::int64_t item = thread.block(); item < batch * heads * rows; item += thread.blocks())
    visit(item / rows / heads, item / rows % heads, item % rows);
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

/// Ends a row with keep * its earlier sums + add * `sums`, for this lane's channels.
template <class S, class Thread>
PLUMB_SIMT void end_row(const Thread& thread, const RowEnd<S>& end, const float* sums, float keep, float add,
                        std::int64_t channels) {
  int slot = 0;
  for (std::int64_t c = thread.lane(); c < channels; c += thread.lanes(), ++slot) {
    const float sum = (end.adds ? keep * end.sums[c] : 0.0F) + add * sums[slot];
    if (end.sums != nullptr) end.sums[c] = sum;
    if (end.to != nullptr) store(end.to[c], sum);
  }
}

/// Adds a block to the output. Blocks take (batch, head, query) in turn. output: [b*S, a*d], or null before the last
/// block; sums: [b*S, a*d] in fp32, or null where the first block is the last; log_sum_exp: [b, a, S]
template <class S>
struct AttentionForward {
  S* output;
  float* sums;
  float* log_sum_exp;
  AttentionView<S> of;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const AttentionSize& size = of.size();
    const AttentionBlock& block = of.block;
    for_each_attention_row(thread, size.batch, size.heads, size.sequence, [&](auto batch, auto head, auto row) {
      const ProbabilityMask mask(size.dropout, of.numbers, batch, head);
      const std::int64_t query = block.queries.position(row), end = block.keys_end(query), width = of.key_width();
      const std::int64_t statistic = of.statistic(batch, head, row);
      const float before = block.is_first ? -INFINITY : log_sum_exp[statistic];
      const S* q = of.qkv + of.query(batch, row, head);
      const S* keys = of.keys() + of.key(batch, 0, of.kv_head(head));
      const S* values = keys + of.to_value(of.kv_head(head));
      const std::int64_t channels = size.value_channels();
      float part[channels_of_lane<Thread>()] = {};
      float largest = -INFINITY;
      float total = 0;
      for (std::int64_t tile = block.first_key(query); tile < end; tile += thread.lanes()) {
        const std::int64_t key = tile + thread.lane();
        float score = -INFINITY;
        if (key < end) score = softcapped(of.scale() * dot(q, keys + key * width, size.head_size), size.softcap);
        const float most = Larger{}(largest, combine_over_block(thread, score, Larger{}));
        const float shrink = expf(largest - most);  // 0 in the first tile
        const float weight = key < end ? expf(score - most) : 0.0F;
        total = total * shrink + combine_over_block(thread, weight, Add{});
        largest = most;
        const float kept = key < end ? weight * mask.factor(query, block.keys.position(key)) : 0.0F;
        add_weighted_rows(thread, part, shrink, kept, smaller(end - tile, thread.lanes()), channels,
                          [&](std::int64_t i) { return values + (tile + i) * width; });
      }
      MergedSoftmax merged = merged_softmax(before, largest, total);
      const bool has_sink = of.sinks != nullptr && output != nullptr;
      if (has_sink) {
        merged = with_sink(merged, of.sinks[head]);
        thread.sync();  // since every lane has read what was there before
      }
      // Without a key or a sink there is no barrier between reading it and here, nor anything to write.
      if (thread.lane() == 0 && (total != 0 || block.is_first || has_sink)) log_sum_exp[statistic] = merged.log_sum_exp;
      const std::int64_t at = of.output(batch, row, head);
      end_row(thread, end_at(at), part, merged.keep, merged.add, channels);
    });
  }

 private:
  PLUMB_SIMT RowEnd<S> end_at(std::int64_t at) const {
    return {output == nullptr ? nullptr : output + at, sums == nullptr ? nullptr : sums + at, !of.block.is_first};
  }
};

/// Adds a block to the queries' gradient. dqkv: [b*S, (a+2k)*d], whose queries' columns are written, or null before the
/// last block; sums: [b*S, a*d] in fp32, or null where the first block is the last; products: [b, a, S], the inner
/// product of each output row and its gradient, which the pass for keys and values reads; doutput, output: [b*S, a*d].
/// output and log_sum_exp are those of the whole attention.
template <class S>
struct AttentionQueryGradient {
  S* dqkv;
  float* sums;
  float* products;
  const S* doutput;
  const S* output;
  const float* log_sum_exp;
  AttentionView<S> of;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const AttentionSize& size = of.size();
    const AttentionBlock& block = of.block;
    for_each_attention_row(thread, size.batch, size.heads, size.sequence, [&](auto batch, auto head, auto row) {
      const ProbabilityMask mask(size.dropout, of.numbers, batch, head);
      const std::int64_t query = block.queries.position(row), end = block.keys_end(query), width = of.key_width();
      const std::int64_t statistic = of.statistic(batch, head, row), at = of.output(batch, row, head);
      const S* q = of.qkv + of.query(batch, row, head);
      const S* keys = of.keys() + of.key(batch, 0, of.kv_head(head));
      const S* values = keys + of.to_value(of.kv_head(head));
      const std::int64_t channels = size.value_channels();
      const S* gradient = doutput + at;
      const S* own_output = output + at;
      const float product =
          sum_over_row(thread, channels, [&](std::int64_t c) { return widened(gradient[c]) * widened(own_output[c]); });
      if (thread.lane() == 0) products[statistic] = product;
      float part[channels_of_lane<Thread>()] = {};
      for (std::int64_t tile = block.first_key(query); tile < end; tile += thread.lanes()) {
        const std::int64_t key = tile + thread.lane();
        float of_score = 0;
        if (key < end) {
          const float score = softcapped(of.scale() * dot(q, keys + key * width, size.head_size), size.softcap);
          const float probability = expf(score - log_sum_exp[statistic]);
          const float of_probability = dot(gradient, values + key * width, channels);
          of_score = probability * (mask.factor(query, block.keys.position(key)) * of_probability - product) *
                     softcap_slope(score, size.softcap);
        }
        add_weighted_rows(thread, part, 1, of_score, smaller(end - tile, thread.lanes()), size.head_size,
                          [&](std::int64_t i) { return keys + (tile + i) * width; });
      }
      S* to = dqkv == nullptr ? nullptr : dqkv + of.query(batch, row, head);
      end_row(thread, RowEnd<S>{to, sums == nullptr ? nullptr : sums + of.query_sum(batch, row, head), !block.is_first},
              part, 1, of.scale(), size.head_size);
    });
  }
};

/// Computes the gradients of keys and values, after AttentionQueryGradient has run, whose products it reads. Blocks
/// take (batch, kv head, key) in turn; the queries of a group's heads are added in their order. dqkv: [b*S, (a+2k)*d], where
/// the columns of keys that stand beside the queries are written; gradients: [b*K, 2k*d] in fp32, to which those of
/// other keys are added
template <class S>
struct AttentionKeyValueGradient {
  S* dqkv;
  float* gradients;
  const float* products;
  const S* doutput;
  const float* log_sum_exp;
  AttentionView<S> of;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const AttentionSize& size = of.size();
    const AttentionBlock& block = of.block;
    const std::int64_t group = size.heads / size.kv_heads, rows = block.keys_seen();
    for_each_attention_row(thread, size.batch, size.kv_heads, rows, [&](auto batch, auto kv, auto key_row) {
      const std::int64_t key = block.keys.position(key_row);
      const std::int64_t first = block.first_query(key), end = block.queries_end(key);
      const std::int64_t key_at = of.key(batch, key_row, kv);
      const S* k = of.keys() + key_at;
      const S* v = k + of.to_value(kv);
      const std::int64_t channels = size.value_channels();
      float to_key[channels_of_lane<Thread>()] = {};
      float to_value[channels_of_lane<Thread>()] = {};
      for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
        const ProbabilityMask mask(size.dropout, of.numbers, batch, head);
        for (std::int64_t tile = first; tile < end; tile += thread.lanes()) {
          const std::int64_t row = tile + thread.lane();
          float probability = 0;
          float of_score = 0;
          if (row < end) {
            const std::int64_t statistic = of.statistic(batch, head, row);
            const float score =
                softcapped(of.scale() * dot(of.qkv + of.query(batch, row, head), k, size.head_size), size.softcap);
            probability = expf(score - log_sum_exp[statistic]);
            const float factor = mask.factor(block.queries.position(row), key);
            const float of_probability = dot(doutput + of.output(batch, row, head), v, channels);
            of_score =
                probability * (factor * of_probability - products[statistic]) * softcap_slope(score, size.softcap);
            probability *= factor;
          }
          const std::int64_t count = smaller(end - tile, thread.lanes());
          add_weighted_rows(thread, to_value, 1, probability, count, channels,
                            [&](std::int64_t i) { return doutput + of.output(batch, tile + i, head); });
          add_weighted_rows(thread, to_key, 1, of_score, count, size.head_size,
                            [&](std::int64_t i) { return of.qkv + of.query(batch, tile + i, head); });
        }
      }
      end_row(thread, end_at(key_at), to_key, 1, of.scale(), size.head_size);
      end_row(thread, end_at(key_at + of.to_value(kv)), to_value, 1, 1, channels);
    });
  }

 private:
  PLUMB_SIMT RowEnd<S> end_at(std::int64_t at) const {
    if (of.keys_values == nullptr) return {dqkv + at, nullptr, false};
    return {nullptr, gradients + at, true};
  }
};

}}}  // namespace plumb::kernels::simt
