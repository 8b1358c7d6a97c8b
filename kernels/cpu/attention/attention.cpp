#include "kernels/cpu/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention/visible_keys.h"
#include "kernels/cpu/products/panel.h"
#include "kernels/cpu/reduce.h"

namespace plumb { inline namespace kernels {
namespace {

constexpr std::int64_t kBlockRows = 64;  // query rows at once: scores of 64 x 2048 keys fit the second-level cache

/// Query rows [first, last) of one sequence, counted from its start, and the keys [first_key, last) that any of them
/// sees.
struct QueryBlock {
  std::int64_t first;
  std::int64_t last;
  std::int64_t first_key;
  std::int64_t rows() const { return last - first; }
  std::int64_t keys() const { return last - first_key; }
};

std::int64_t first_key_of(std::int64_t query, std::int64_t window) {
  return window > 0 ? std::max<std::int64_t>(0, query - window + 1) : 0;
}

QueryBlock block_at(std::int64_t first, const AttentionSlice& slice) {
  return {first, std::min(first + kBlockRows, slice.first + slice.count), first_key_of(first, slice.size.window)};
}

/// Offsets, in elements, of the first rows of one block of one head of one sequence, and the strides between tokens.
struct BlockPlace {
  std::int64_t query;
  std::int64_t query_width;
  std::int64_t key;
  std::int64_t value;
  std::int64_t key_width;
  std::int64_t output;
  std::int64_t output_width;
  std::int64_t statistics;
  std::int64_t sequence;
  std::int64_t head;
};

BlockPlace place_of(std::int64_t sequence, std::int64_t head, const QueryBlock& block, const AttentionSlice& slice,
                    bool keys_are_apart) {
  const AttentionSize& size = slice.size;
  const std::int64_t d = size.head_size, width = size.query_width() + size.key_value_width();
  const std::int64_t group = head / (size.heads / size.kv_heads);
  const std::int64_t key_width = keys_are_apart ? size.key_value_width() : width;
  const std::int64_t first_column = keys_are_apart ? 0 : size.query_width();
  const std::int64_t row = block.first - slice.first;
  const std::int64_t query_row = sequence * slice.count + row;
  const std::int64_t first_key = (sequence * size.sequence + block.first_key) * key_width + first_column;
  return {.query = query_row * width + head * d,
          .query_width = width,
          .key = first_key + group * d,
          .value = first_key + size.kv_heads * d + group * size.value_channels(),
          .key_width = key_width,
          .output = query_row * size.output_width() + head * size.value_channels(),
          .output_width = size.output_width(),
          .statistics = (sequence * size.heads + head) * slice.count + row,
          .sequence = sequence,
          .head = head};
}

/// Calls visit(place, block) for each head of each sequence and each block of its query rows.
template <class Visit>
void for_each_block(const AttentionSlice& slice, bool keys_are_apart, Visit visit) {
  for (std::int64_t sequence = 0; sequence < slice.size.batch; ++sequence)
    for (std::int64_t head = 0; head < slice.size.heads; ++head)
      for (std::int64_t first = slice.first; first < slice.first + slice.count; first += kBlockRows) {
        const QueryBlock block = block_at(first, slice);
        visit(place_of(sequence, head, block, slice, keys_are_apart), block);
      }
}

AttentionSlice whole(const AttentionSize& size) {
  return {.size = size, .first = 0, .count = size.sequence};
}

/// Returns the block's keys that a query sees: [begin, end).
VisibleKeys visible_keys(std::int64_t query, const QueryBlock& block, std::int64_t window) {
  return {first_key_of(query, window) - block.first_key, query + 1 - block.first_key};
}

/// Turns the scores of one query row into probabilities. Returns the log-sum-exp. scores: [keys of the block]
float softmax(float* scores, std::int64_t query, const QueryBlock& block, std::int64_t window) {
  const VisibleKeys keys = visible_keys(query, block, window);
  float* seen = scores + keys.begin;
  const std::int64_t count = keys.end - keys.begin;
  const float largest = lane_max(seen, count);
  for (std::int64_t i = 0; i < count; ++i) seen[i] = std::exp(seen[i] - largest);
  const float sum = lane_sum(count, [&](std::int64_t i) { return seen[i]; });
  const float scale = 1.0F / sum;
  for (std::int64_t i = 0; i < count; ++i) seen[i] *= scale;
  hide_others(scores, keys, block.keys());
  return largest + std::log(sum);
}

/// Turns scores into probabilities again, by means of their log-sum-exp. scores: [keys of the block]
void softmax_again(float* scores, std::int64_t query, float log_sum_exp, const QueryBlock& block, std::int64_t window) {
  const VisibleKeys keys = visible_keys(query, block, window);
  for (std::int64_t key = keys.begin; key < keys.end; ++key) scores[key] = std::exp(scores[key] - log_sum_exp);
  hide_others(scores, keys, block.keys());
}

/// Drops probabilities, or their gradient, of a block. y, x: [rows, keys of the block]
void drop(float* y, const float* x, const BlockPlace& at, const QueryBlock& block, const AttentionSize& size) {
  for (std::int64_t row = 0; row < block.rows(); ++row)
    drop_probabilities(y + row * block.keys(), x + row * block.keys(), size.dropout, at.sequence, at.head,
                       block.first + row, block.first_key, block.keys());
}

/// queries: the slice's qkv; keys: the same qkv, or the keys and values of whole sequences.
void forward(float* output, float* log_sum_exp, const float* queries, const float* keys, bool keys_are_apart,
             const AttentionSlice& slice, float* scratch) {
  const std::int64_t d = slice.size.head_size, values = slice.size.value_channels(), window = slice.size.window;
  for_each_block(slice, keys_are_apart, [&](const BlockPlace& at, const QueryBlock& block) {
    const std::int64_t rows = block.rows(), seen = block.keys();
    float* scores = scratch;  // [rows, seen]
    multiply_transposed(scores, seen, {queries + at.query, at.query_width}, {keys + at.key, at.key_width}, rows, seen,
                        d, score_scale(slice.size));
    if (slice.size.softcap > 0) softcap(scores, rows * seen, slice.size.softcap);
    for (std::int64_t row = 0; row < rows; ++row)
      log_sum_exp[at.statistics + row] = softmax(scores + row * seen, block.first + row, block, window);
    if (slice.size.dropout.probability > 0) drop(scores, scores, at, block, slice.size);
    multiply(output + at.output, at.output_width, {scores, seen}, {keys + at.value, at.key_width}, rows, values, seen);
  });
}

/// The operands of the backward. The gradients of keys and values are added to dkeys.
struct BackwardOperands {
  float* dqueries;
  float* dkeys;
  const float* doutput;
  const float* queries;
  const float* keys;
  const float* output;
  const float* log_sum_exp;
};
void backward(const BackwardOperands& of, bool keys_are_apart, const AttentionSlice& slice, float* scratch) {
  const std::int64_t d = slice.size.head_size, values = slice.size.value_channels();
  const float scale = score_scale(slice.size), cap = slice.size.softcap;
  for_each_block(slice, keys_are_apart, [&](const BlockPlace& at, const QueryBlock& block) {
    const std::int64_t rows = block.rows(), seen = block.keys();
    const Panel query_rows{of.queries + at.query, at.query_width};
    const Panel key_rows{of.keys + at.key, at.key_width};
    const Panel value_rows{of.keys + at.value, at.key_width};
    const Panel doutput_rows{of.doutput + at.output, at.output_width};
    const float* output_rows = of.output + at.output;
    float* scores = scratch;                      // [rows, seen], then the probabilities, then the scores' gradient
    float* dprobability = scratch + rows * seen;  // [rows, seen]

    multiply_transposed(scores, seen, query_rows, key_rows, rows, seen, d, scale);
    if (cap > 0) softcap(scores, rows * seen, cap);
    for (std::int64_t row = 0; row < rows; ++row)
      softmax_again(scores + row * seen, block.first + row, of.log_sum_exp[at.statistics + row], block,
                    slice.size.window);
    const bool drops_some = slice.size.dropout.probability > 0;
    if (drops_some) drop(dprobability, scores, at, block, slice.size);
    const Panel weighed{drops_some ? dprobability : scores, seen};
    accumulate_transposed(of.dkeys + at.value, at.key_width, weighed, doutput_rows, seen, values, rows);
    multiply_transposed(dprobability, seen, doutput_rows, value_rows, rows, seen, values, 1.0F);
    if (drops_some) drop(dprobability, dprobability, at, block, slice.size);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* dout = doutput_rows.data + row * doutput_rows.stride;
      const float* out = output_rows + row * at.output_width;
      const float mean = lane_sum(values, [&](std::int64_t c) { return dout[c] * out[c]; });
      float* p = scores + row * seen;
      float* dp = dprobability + row * seen;
      for (std::int64_t key = 0; key < seen; ++key) dp[key] = scale * (dp[key] - mean);
      if (cap > 0) scale_by_slopes(dp, p, of.log_sum_exp[at.statistics + row], seen, cap);
      for (std::int64_t key = 0; key < seen; ++key) p[key] *= dp[key];
    }
    multiply(of.dqueries + at.query, at.query_width, {scores, seen}, key_rows, rows, d, seen);
    accumulate_transposed(of.dkeys + at.key, at.key_width, {scores, seen}, query_rows, seen, d, rows);
  });
}

/// Calls visit(element of the slice's qkv, element of keys_values, count) for each token of the slice.
template <class Visit>
void for_each_key_row(const AttentionSlice& slice, Visit visit) {
  const AttentionSize& size = slice.size;
  const std::int64_t kept = size.key_value_width(), queries = size.query_width();
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence)
    for (std::int64_t token = 0; token < slice.count; ++token)
      visit((sequence * slice.count + token) * (queries + kept) + queries,
            (sequence * size.sequence + slice.first + token) * kept, kept);
}

}  // namespace

std::int64_t attention_scratch_elements(const AttentionSize& size) {
  const std::int64_t rows = std::min(kBlockRows, size.sequence);
  return 2 * rows * size.sequence;
}

void attention_forward(float* output, float* log_sum_exp, const float* qkv, const AttentionSize& size, float* scratch) {
  forward(output, log_sum_exp, qkv, qkv, false, whole(size), scratch);
}

void attention_backward(float* dqkv, const float* doutput, const float* qkv, const float* output,
                        const float* log_sum_exp, const AttentionSize& size, float* scratch) {
  const std::int64_t width = size.query_width() + size.key_value_width();
  std::fill(dqkv, dqkv + size.batch * size.sequence * width, 0.0F);
  backward({dqkv, dqkv, doutput, qkv, qkv, output, log_sum_exp}, false, whole(size), scratch);
}

void attention_slice_forward(float* output, float* log_sum_exp, const float* qkv, const float* keys_values,
                             const AttentionSlice& slice, float* scratch) {
  forward(output, log_sum_exp, qkv, keys_values, true, slice, scratch);
}

void attention_slice_backward(float* dqkv, float* dkeys_values, const float* doutput, const float* qkv,
                              const float* keys_values, const float* output, const float* log_sum_exp,
                              const AttentionSlice& slice, float* scratch) {
  backward({dqkv, dkeys_values, doutput, qkv, keys_values, output, log_sum_exp}, true, slice, scratch);
}

void keep_keys_values(float* keys_values, const float* qkv, const AttentionSlice& slice) {
  for_each_key_row(slice, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::copy(qkv + from, qkv + from + count, keys_values + to);
  });
}

void take_keys_values(float* qkv, const float* keys_values, const AttentionSlice& slice) {
  for_each_key_row(slice, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    std::copy(keys_values + from, keys_values + from + count, qkv + to);
  });
}

}}  // namespace plumb::kernels
