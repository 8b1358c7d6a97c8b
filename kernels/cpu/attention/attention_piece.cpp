#include "kernels/cpu/attention/attention_piece.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention/visible_keys.h"
#include "kernels/cpu/products/panel.h"
#include "kernels/cpu/reduce.h"

namespace plumb { inline namespace kernels {
namespace {

constexpr std::int64_t kPieceRows = 64;

/// Some query rows of one head of one sequence: offsets, in elements, of their operands, and the strides between
/// tokens.
struct PieceBlock {
  std::int64_t rows;
  std::int64_t position;  // position of the first row
  std::int64_t query, query_width;
  std::int64_t key, value, key_width;
  std::int64_t output, output_width;
  std::int64_t statistics;
  std::int64_t sequence, head;
};

/// Calls visit(block) for each head of each sequence and each block of query rows that sees any of the keys.
template <class Visit>
void for_each_block(const AttentionPiece& piece, Visit visit) {
  const AttentionSize& size = piece.size;
  const std::int64_t d = size.head_size, values = size.value_channels(), key_width = size.key_value_width();
  const std::int64_t width = size.query_width() + key_width;
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence)
    for (std::int64_t head = 0; head < size.heads; ++head)
      for (std::int64_t first = 0; first < piece.queries.count; first += kPieceRows) {
        const std::int64_t rows = std::min(kPieceRows, piece.queries.count - first);
        const std::int64_t position = piece.queries.position + first;
        if (position + rows <= piece.keys.position) continue;
        const std::int64_t query_row = sequence * piece.queries.rows + piece.queries.row + first;
        const std::int64_t first_key = (sequence * piece.keys.rows + piece.keys.row) * key_width;
        const std::int64_t group = head / (size.heads / size.kv_heads);
        visit(PieceBlock{.rows = rows,
                         .position = position,
                         .query = query_row * width + head * d,
                         .query_width = width,
                         .key = first_key + group * d,
                         .value = first_key + size.kv_heads * d + group * values,
                         .key_width = key_width,
                         .output = query_row * size.output_width() + head * values,
                         .output_width = size.output_width(),
                         .statistics = (sequence * size.heads + head) * piece.queries.rows + piece.queries.row + first,
                         .sequence = sequence,
                         .head = head});
      }
}

/// Returns the piece's keys that the query at a position sees: [begin, end), which may be empty.
VisibleKeys visible_keys(std::int64_t query, const AttentionPiece& piece) {
  const std::int64_t window = piece.size.window;
  const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, query - window + 1) : 0;
  const std::int64_t begin = std::clamp<std::int64_t>(first - piece.keys.position, 0, piece.keys.count);
  const std::int64_t end = std::clamp<std::int64_t>(query + 1 - piece.keys.position, begin, piece.keys.count);
  return {begin, end};
}

/// The largest score that a query row sees, and the sum of exp(score - largest).
struct RowSums {
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0;
};
/// Turns scores into exp(score - largest), and those of keys that the query does not see into 0.
RowSums exponentials(float* scores, const VisibleKeys& keys, std::int64_t count) {
  hide_others(scores, keys, count);
  if (keys.begin == keys.end) return {};
  float* seen = scores + keys.begin;
  const std::int64_t number = keys.end - keys.begin;
  const float largest = lane_max(seen, number);
  for (std::int64_t i = 0; i < number; ++i) seen[i] = std::exp(seen[i] - largest);
  return {largest, lane_sum(number, [&](std::int64_t i) { return seen[i]; })};
}

/// Adds exp-weighted values (part [d], with its sums) to a normalised output row and its log-sum-exp.
void merge(float* output, float* log_sum_exp, const float* part, const RowSums& sums, std::int64_t d) {
  if (sums.sum == 0) return;
  const float added = sums.largest + std::log(sums.sum), before = *log_sum_exp;
  const float larger = std::max(added, before);
  const float total = larger + std::log(std::exp(added - larger) + std::exp(before - larger));
  const float keep = std::exp(before - total), add = std::exp(sums.largest - total);
  for (std::int64_t c = 0; c < d; ++c) output[c] = output[c] * keep + part[c] * add;
  *log_sum_exp = total;
}

/// Drops probabilities, or their gradient, of a block. y, x: [rows, keys]
void drop(float* y, const float* x, const PieceBlock& block, const AttentionPiece& piece) {
  const std::int64_t keys = piece.keys.count;
  for (std::int64_t row = 0; row < block.rows; ++row)
    drop_probabilities(y + row * keys, x + row * keys, piece.size.dropout, block.sequence, block.head,
                       block.position + row, piece.keys.position, keys);
}

}  // namespace

std::int64_t attention_piece_scratch_elements(const AttentionPiece& piece) {
  const std::int64_t rows = std::min(kPieceRows, piece.queries.count);
  return rows * (piece.keys.count + std::max(piece.keys.count, piece.size.value_channels() + 2));
}

void attention_piece_forward(float* output, float* log_sum_exp, const float* qkv, const float* keys_values,
                             const AttentionPiece& piece, float* scratch) {
  const std::int64_t d = piece.size.head_size, values = piece.size.value_channels(), keys = piece.keys.count;
  for_each_block(piece, [&](const PieceBlock& block) {
    float* scores = scratch;                    // [rows, keys]
    float* part = scratch + block.rows * keys;  // [rows, channels of values]
    float* sums = part + block.rows * values;   // [rows, 2]: largest, sum
    multiply_transposed(scores, keys, {qkv + block.query, block.query_width},
                        {keys_values + block.key, block.key_width}, block.rows, keys, d, score_scale(piece.size));
    if (piece.size.softcap > 0) softcap(scores, block.rows * keys, piece.size.softcap);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const RowSums of_row = exponentials(scores + row * keys, visible_keys(block.position + row, piece), keys);
      sums[2 * row] = of_row.largest;
      sums[2 * row + 1] = of_row.sum;
    }
    if (piece.size.dropout.probability > 0) drop(scores, scores, block, piece);
    multiply(part, values, {scores, keys}, {keys_values + block.value, block.key_width}, block.rows, values, keys);
    for (std::int64_t row = 0; row < block.rows; ++row)
      merge(output + block.output + row * block.output_width, log_sum_exp + block.statistics + row, part + row * values,
            {sums[2 * row], sums[2 * row + 1]}, values);
  });
}

void attention_piece_backward(float* dqkv, float* dkeys_values, const float* doutput, const float* qkv,
                              const float* keys_values, const float* output, const float* log_sum_exp,
                              const AttentionPiece& piece, float* scratch) {
  const std::int64_t d = piece.size.head_size, values = piece.size.value_channels(), keys = piece.keys.count;
  const float scale = score_scale(piece.size), cap = piece.size.softcap;
  for_each_block(piece, [&](const PieceBlock& block) {
    const Panel query_rows{qkv + block.query, block.query_width};
    const Panel key_rows{keys_values + block.key, block.key_width};
    const Panel value_rows{keys_values + block.value, block.key_width};
    const Panel doutput_rows{doutput + block.output, block.output_width};
    float* scores = scratch;  // [rows, keys], then the probabilities, then their scores' gradient
    float* dprobability = scratch + block.rows * keys;  // [rows, keys]
    multiply_transposed(scores, keys, query_rows, key_rows, block.rows, keys, d, scale);
    if (cap > 0) softcap(scores, block.rows * keys, cap);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const VisibleKeys seen = visible_keys(block.position + row, piece);
      float* p = scores + row * keys;
      for (std::int64_t key = seen.begin; key < seen.end; ++key)
        p[key] = std::exp(p[key] - log_sum_exp[block.statistics + row]);
      hide_others(p, seen, keys);
    }
    const bool drops_some = piece.size.dropout.probability > 0;
    if (drops_some) drop(dprobability, scores, block, piece);
    const Panel weighed{drops_some ? dprobability : scores, keys};
    accumulate_transposed(dkeys_values + block.value, block.key_width, weighed, doutput_rows, keys, values, block.rows);
    multiply_transposed(dprobability, keys, doutput_rows, value_rows, block.rows, keys, values, 1.0F);
    if (drops_some) drop(dprobability, dprobability, block, piece);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const float* dout = doutput_rows.data + row * doutput_rows.stride;
      const float* out = output + block.output + row * block.output_width;
      const float mean = lane_sum(values, [&](std::int64_t c) { return dout[c] * out[c]; });
      float* p = scores + row * keys;
      float* dp = dprobability + row * keys;
      for (std::int64_t key = 0; key < keys; ++key) dp[key] = scale * (dp[key] - mean);
      if (cap > 0) scale_by_slopes(dp, p, log_sum_exp[block.statistics + row], keys, cap);
      for (std::int64_t key = 0; key < keys; ++key) p[key] *= dp[key];
    }
    multiply(dqkv + block.query, block.query_width, {scores, keys}, key_rows, block.rows, d, keys, true);
    accumulate_transposed(dkeys_values + block.key, block.key_width, {scores, keys}, query_rows, keys, d, block.rows);
  });
}

}}  // namespace plumb::kernels
