#pragma once
// Causal attention of a rank's queries to a block of keys and values that goes round a ring of context ranks, on a GPU
// (kernels/cpu/attention/attention_piece.h; Liu et al. 2023). The parts of each block are merged by log-sum-exp in
// fp32; the gradients of the block are added in fp32 and go round with it. Attention of a slice's queries to the keys
// and values of their sequences (Sun et al. 2024) is the same with one block. Blocks and lanes divide the work as in
// attention.h, on the vector units too.

#include "kernels/simt/attention/attention.h"

namespace plumb { inline namespace kernels {

/// The places in a sequence of those rows that a rank has: two runs, one behind the other.
struct RunsOfTokens {
  std::int64_t first = 0;   ///< position of row 0
  std::int64_t second = 0;  ///< position of row `split`, behind those of the first run
  std::int64_t split = 0;   ///< rows of the first run

  PLUMB_SIMT std::int64_t position(std::int64_t row) const { return row < split ? first + row : second + row - split; }

  /// Returns the first of `rows` rows at `position` or behind it.
  PLUMB_SIMT std::int64_t row_from(std::int64_t position, std::int64_t rows) const {
    if (position < first + split) return position > first ? position - first : 0;
    if (position <= second) return split;
    return position - second + split < rows ? position - second + split : rows;
  }
};

struct AttentionBlock {
  AttentionSize size;  ///< sequence: S, the tokens of each sequence that a rank has
  RunsOfTokens queries;
  RunsOfTokens keys;
  /// True for the first block that the queries see, before which there are no sums to add to.
  bool is_first = false;
  std::int64_t key_rows = 0;    ///< K rows of each sequence in the block; 0: S
  std::int64_t key_stride = 0;  ///< rows from a sequence to the next one in the block's tensor; 0: K

  PLUMB_SIMT std::int64_t rows_of_keys() const { return key_rows > 0 ? key_rows : size.sequence; }
  PLUMB_SIMT std::int64_t stride_of_keys() const { return key_stride > 0 ? key_stride : rows_of_keys(); }

  /// Return the rows of the block that the query at a position sees: the first one, and the one behind the last.
  PLUMB_SIMT std::int64_t first_key(std::int64_t query) const {
    return size.window > 0 ? keys.row_from(query - size.window + 1, rows_of_keys()) : 0;
  }
  PLUMB_SIMT std::int64_t keys_end(std::int64_t query) const { return keys.row_from(query + 1, rows_of_keys()); }
  /// Returns the row behind the last one that any query sees.
  PLUMB_SIMT std::int64_t keys_seen() const { return keys_end(queries.position(size.sequence - 1)); }
  /// Return the queries that see the key at a position: the first one, and the one behind the last.
  PLUMB_SIMT std::int64_t first_query(std::int64_t key) const { return queries.row_from(key, size.sequence); }
  PLUMB_SIMT std::int64_t queries_end(std::int64_t key) const {
    return size.window > 0 ? queries.row_from(key + size.window, size.sequence) : size.sequence;
  }
};

/// Returns the block for a slice's queries and the keys and values [b*s, 2k*d] of their sequences.
inline AttentionBlock block_of_slice(const AttentionSlice& slice) {
  const std::int64_t whole = slice.size.sequence;
  AttentionBlock block{
      .size = slice.size,
      .queries = {.first = slice.first, .second = slice.first + slice.count, .split = slice.count},
      .keys = {.first = 0, .second = whole, .split = whole},
      .is_first = true,
      .key_rows = whole,
  };
  block.size.sequence = slice.count;
  return block;
}

}}  // namespace plumb::kernels

namespace plumb { inline namespace kernels { namespace simt {

/// The layout of a block's keys and values [b*K, 2k*d]: where rows and heads begin.
struct AttentionBlockRows {
  AttentionSize size;

  PLUMB_SIMT std::int64_t key(std::int64_t row, std::int64_t kv) const {
    return (row * 2 * size.kv_heads + kv) * size.head_size;
  }
  PLUMB_SIMT std::int64_t value(std::int64_t row, std::int64_t kv) const { return key(row, size.kv_heads + kv); }
};

/// Calls visit(slot, c) for this lane's channels.
template <class Thread, class Visit>
PLUMB_SIMT void for_each_channel(const Thread& thread, std::int64_t channels, const Visit& visit) {
  int slot = 0;
  for (std::int64_t c = thread.lane(); c < channels; c += thread.lanes(), ++slot) visit(slot, c);
}

/// Adds a block to the output. output: [b*S, a*d], or null before the last block; sums: [b*S, a*d] in fp32, or null
/// where the first block is the last; log_sum_exp: [b, a, S]; qkv: [b*S, (a+2k)*d]; keys_values: [b*K, 2k*d]
template <class S>
struct AttentionBlockForward {
  S* output;
  float* sums;
  float* log_sum_exp;
  const S* qkv;
  const S* keys_values;
  AttentionBlock block;
  const StepNumbers* numbers = nullptr;  ///< step of dropout; null: its key's step counts

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const AttentionSize& size = block.size;
    const AttentionRows rows{size};
    const AttentionBlockRows block_rows{size};
    const ProbabilityMask mask(size.dropout, numbers);
    for_each_attention_row(thread, size, size.heads, [&](std::int64_t batch, std::int64_t head, std::int64_t row) {
      const std::int64_t first_row = batch * size.sequence, kv = rows.kv_head(head);
      const std::int64_t first_key_row = batch * block.stride_of_keys();
      const std::int64_t query = block.queries.position(row), end = block.keys_end(query);
      const std::int64_t statistic = rows.statistic(batch, head, row);
      const float before = block.is_first ? -INFINITY : log_sum_exp[statistic];
      const S* q = qkv + rows.query(first_row + row, head);
      float part[channels_of_lane<Thread>()] = {};
      float largest = -INFINITY;
      float total = 0;
      for (std::int64_t tile = block.first_key(query); tile < end; tile += thread.lanes()) {
        const std::int64_t key = tile + thread.lane();
        float score = -INFINITY;
        if (key < end)
          score = rows.scale() * dot(q, keys_values + block_rows.key(first_key_row + key, kv), size.head_size);
        const float most = Larger{}(largest, combine_over_block(thread, score, Larger{}));
        const float shrink = expf(largest - most);  // 0 in the first tile
        const float weight = key < end ? expf(score - most) : 0.0F;
        total = total * shrink + combine_over_block(thread, weight, Add{});
        largest = most;
        const float kept = key < end ? weight * mask.factor(batch, head, query, block.keys.position(key)) : 0.0F;
        add_weighted_rows(thread, part, shrink, kept, smaller(end - tile, thread.lanes()), size.head_size,
                          [&](std::int64_t i) { return keys_values + block_rows.value(first_key_row + tile + i, kv); });
      }
      float keep = block.is_first ? 0.0F : 1.0F;
      float add = 0;
      if (total > 0) {
        const float added = largest + logf(total), larger = Larger{}(added, before);
        const float whole = larger + logf(expf(added - larger) + expf(before - larger));
        keep = expf(before - whole);
        add = expf(largest - whole);
        if (thread.lane() == 0) log_sum_exp[statistic] = whole;
      } else if (block.is_first && thread.lane() == 0) {
        log_sum_exp[statistic] = -INFINITY;
      }
      const std::int64_t at = rows.output(first_row + row, head);
      for_each_channel(thread, size.head_size, [&](int slot, std::int64_t c) {
        const float past = block.is_first ? 0.0F : sums[at + c] * keep;
        const float sum = past + part[slot] * add;
        if (sums != nullptr) sums[at + c] = sum;
        if (output != nullptr) store(output[at + c], sum);
      });
    });
  }
};

/// Adds a block to the queries' gradient. dqkv: [b*S, (a+2k)*d], whose queries' columns are written, or null before the
/// last block; sums: [b*S, a*d] in fp32, or null where the first block is the last; products: those of
/// AttentionQueryGradient, written with each block. output and log_sum_exp are those of the whole attention.
template <class S>
struct AttentionBlockQueryGradient {
  S* dqkv;
  float* sums;
  float* products;
  const S* doutput;
  const S* qkv;
  const S* keys_values;
  const S* output;
  const float* log_sum_exp;
  AttentionBlock block;
  const StepNumbers* numbers = nullptr;  ///< step of dropout, as in the forward

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const AttentionSize& size = block.size;
    const AttentionRows rows{size};
    const AttentionBlockRows block_rows{size};
    const ProbabilityMask mask(size.dropout, numbers);
    for_each_attention_row(thread, size, size.heads, [&](std::int64_t batch, std::int64_t head, std::int64_t row) {
      const std::int64_t first_row = batch * size.sequence, kv = rows.kv_head(head);
      const std::int64_t first_key_row = batch * block.stride_of_keys();
      const std::int64_t query = block.queries.position(row), end = block.keys_end(query);
      const std::int64_t statistic = rows.statistic(batch, head, row), at = rows.output(first_row + row, head);
      const S* q = qkv + rows.query(first_row + row, head);
      const S* gradient = doutput + at;
      const S* own_output = output + at;
      const float product = sum_over_row(thread, size.head_size,
                                         [&](std::int64_t c) { return widened(gradient[c]) * widened(own_output[c]); });
      if (thread.lane() == 0) products[statistic] = product;
      float part[channels_of_lane<Thread>()] = {};
      for (std::int64_t tile = block.first_key(query); tile < end; tile += thread.lanes()) {
        const std::int64_t key = tile + thread.lane();
        float of_score = 0;
        if (key < end) {
          const S* k = keys_values + block_rows.key(first_key_row + key, kv);
          const S* v = keys_values + block_rows.value(first_key_row + key, kv);
          const float score = rows.scale() * dot(q, k, size.head_size);
          const float probability = expf(score - log_sum_exp[statistic]);
          const float factor = mask.factor(batch, head, query, block.keys.position(key));
          of_score = probability * (factor * dot(gradient, v, size.head_size) - product);
        }
        add_weighted_rows(thread, part, 1, of_score, smaller(end - tile, thread.lanes()), size.head_size,
                          [&](std::int64_t i) { return keys_values + block_rows.key(first_key_row + tile + i, kv); });
      }
      const std::int64_t to = rows.query(first_row + row, head);
      for_each_channel(thread, size.head_size, [&](int slot, std::int64_t c) {
        const float sum = (block.is_first ? 0.0F : sums[at + c]) + rows.scale() * part[slot];
        if (sums != nullptr) sums[at + c] = sum;
        if (dqkv != nullptr) store(dqkv[to + c], sum);
      });
    });
  }
};

/// Adds to the gradients of a block's keys and values, after AttentionBlockQueryGradient has run, whose products it
/// reads. gradients: [b*K, 2k*d], fp32
template <class S>
struct AttentionBlockKeyValueGradient {
  float* gradients;
  const float* products;
  const S* doutput;
  const S* qkv;
  const S* keys_values;
  const float* log_sum_exp;
  AttentionBlock block;
  const StepNumbers* numbers = nullptr;  ///< step of dropout, as in the forward

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const AttentionSize& size = block.size;
    const AttentionRows rows{size};
    const AttentionBlockRows block_rows{size};
    const ProbabilityMask mask(size.dropout, numbers);
    const std::int64_t group = size.heads / size.kv_heads;
    AttentionSize seen = size;
    seen.sequence = block.keys_seen();
    for_each_attention_row(thread, seen, size.kv_heads, [&](std::int64_t batch, std::int64_t kv, std::int64_t key_row) {
      const std::int64_t first_row = batch * size.sequence, key = block.keys.position(key_row);
      const std::int64_t first = block.first_query(key), end = block.queries_end(key);
      const std::int64_t key_at = block_rows.key(batch * block.stride_of_keys() + key_row, kv);
      const std::int64_t value_at = block_rows.value(batch * block.stride_of_keys() + key_row, kv);
      const S* k = keys_values + key_at;
      const S* v = keys_values + value_at;
      float to_key[channels_of_lane<Thread>()] = {};
      float to_value[channels_of_lane<Thread>()] = {};
      for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
        for (std::int64_t tile = first; tile < end; tile += thread.lanes()) {
          const std::int64_t row = tile + thread.lane();
          float probability = 0;
          float of_score = 0;
          if (row < end) {
            const std::int64_t statistic = rows.statistic(batch, head, row);
            const float score = rows.scale() * dot(qkv + rows.query(first_row + row, head), k, size.head_size);
            probability = expf(score - log_sum_exp[statistic]);
            const float factor = mask.factor(batch, head, block.queries.position(row), key);
            const float of_probability = dot(doutput + rows.output(first_row + row, head), v, size.head_size);
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
      for_each_channel(thread, size.head_size, [&](int slot, std::int64_t c) {
        gradients[key_at + c] += rows.scale() * to_key[slot];
        gradients[value_at + c] += to_value[slot];
      });
    });
  }
};

}}}  // namespace plumb::kernels::simt
