#include "kernels/cpu/attention.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/reduce.h"

namespace plumb {
namespace {

constexpr std::int64_t kBlockRows = 64;  // query rows at once: scores of 64 x 2048 keys fit the second-level cache

blasint as_blas(std::int64_t size) {
  return static_cast<blasint>(size);
}

/// A matrix inside a larger row-major one.
struct Panel {
  const float* data;
  std::int64_t stride;
};

/// result [m, n] (stride) = alpha * a [m, k] * b [n, k]^T
void multiply_transposed(float* result, std::int64_t stride, Panel a, Panel b, std::int64_t m, std::int64_t n,
                         std::int64_t k, float alpha) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, as_blas(m), as_blas(n), as_blas(k), alpha, a.data,
              as_blas(a.stride), b.data, as_blas(b.stride), 0.0F, result, as_blas(stride));
}

/// result [m, n] (stride) = a [m, k] * b [k, n]
void multiply(float* result, std::int64_t stride, Panel a, Panel b, std::int64_t m, std::int64_t n, std::int64_t k) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, as_blas(m), as_blas(n), as_blas(k), 1.0F, a.data,
              as_blas(a.stride), b.data, as_blas(b.stride), 0.0F, result, as_blas(stride));
}

/// result [m, n] (stride) += a [k, m]^T * b [k, n]
void accumulate_transposed(float* result, std::int64_t stride, Panel a, Panel b, std::int64_t m, std::int64_t n,
                           std::int64_t k) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, as_blas(m), as_blas(n), as_blas(k), 1.0F, a.data,
              as_blas(a.stride), b.data, as_blas(b.stride), 1.0F, result, as_blas(stride));
}

/// Query rows [first, last) of one sequence and the keys [first_key, last) that any of them sees.
struct Block {
  std::int64_t first;
  std::int64_t last;
  std::int64_t first_key;
  std::int64_t rows() const { return last - first; }
  std::int64_t keys() const { return last - first_key; }
};

std::int64_t first_key_of(std::int64_t query, std::int64_t window) {
  return window > 0 ? std::max<std::int64_t>(0, query - window + 1) : 0;
}

Block block_at(std::int64_t first, const AttentionSize& size) {
  return {first, std::min(first + kBlockRows, size.sequence), first_key_of(first, size.window)};
}

/// Where one head of one sequence finds its columns.
struct HeadPlace {
  std::int64_t qkv_width;
  std::int64_t query;  // element of the head's first query in qkv
  std::int64_t key;
  std::int64_t value;
  std::int64_t output_width;
  std::int64_t output;      // element of the head's first output
  std::int64_t statistics;  // element of the head's first log-sum-exp
};

HeadPlace place_of(std::int64_t sequence, std::int64_t head, const AttentionSize& size) {
  const std::int64_t d = size.head_size, width = (size.heads + 2 * size.kv_heads) * d;
  const std::int64_t group = head / (size.heads / size.kv_heads);
  const std::int64_t row = sequence * size.sequence;
  return {.qkv_width = width,
          .query = row * width + head * d,
          .key = row * width + (size.heads + group) * d,
          .value = row * width + (size.heads + size.kv_heads + group) * d,
          .output_width = size.heads * d,
          .output = row * size.heads * d + head * d,
          .statistics = (sequence * size.heads + head) * size.sequence};
}

/// The keys of the block that a query sees: [begin, end).
struct Visible {
  std::int64_t begin;
  std::int64_t end;
};
Visible visible_keys(std::int64_t query, const Block& block, std::int64_t window) {
  return {first_key_of(query, window) - block.first_key, query + 1 - block.first_key};
}

void hide_others(float* scores, const Visible& keys, const Block& block) {
  std::fill(scores, scores + keys.begin, 0.0F);
  std::fill(scores + keys.end, scores + block.keys(), 0.0F);
}

/// Scores of one query row become probabilities. Returns the log-sum-exp. scores: [keys of the block]
float softmax(float* scores, std::int64_t query, const Block& block, std::int64_t window) {
  const Visible keys = visible_keys(query, block, window);
  float* seen = scores + keys.begin;
  const std::int64_t count = keys.end - keys.begin;
  const float largest = lane_max(seen, count);
  for (std::int64_t i = 0; i < count; ++i) seen[i] = std::exp(seen[i] - largest);
  const float sum = lane_sum(count, [&](std::int64_t i) { return seen[i]; });
  const float scale = 1.0F / sum;
  for (std::int64_t i = 0; i < count; ++i) seen[i] *= scale;
  hide_others(scores, keys, block);
  return largest + std::log(sum);
}

/// The same probabilities from the scores and their log-sum-exp. scores: [keys of the block]
void softmax_again(float* scores, std::int64_t query, float log_sum_exp, const Block& block, std::int64_t window) {
  const Visible keys = visible_keys(query, block, window);
  for (std::int64_t key = keys.begin; key < keys.end; ++key) scores[key] = std::exp(scores[key] - log_sum_exp);
  hide_others(scores, keys, block);
}

}  // namespace

std::int64_t attention_scratch_elements(const AttentionSize& size) {
  const std::int64_t rows = std::min(kBlockRows, size.sequence);
  return 2 * rows * size.sequence;
}

void attention_forward(float* output, float* log_sum_exp, const float* qkv, const AttentionSize& size, float* scratch) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(size.head_size));
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence) {
    for (std::int64_t head = 0; head < size.heads; ++head) {
      const HeadPlace at = place_of(sequence, head, size);
      for (std::int64_t first = 0; first < size.sequence; first += kBlockRows) {
        const Block block = block_at(first, size);
        const std::int64_t rows = block.rows(), keys = block.keys(), width = at.qkv_width;
        float* scores = scratch;  // [rows, keys]
        multiply_transposed(scores, keys, {qkv + at.query + first * width, width},
                            {qkv + at.key + block.first_key * width, width}, rows, keys, size.head_size, scale);
        for (std::int64_t row = 0; row < rows; ++row)
          log_sum_exp[at.statistics + first + row] = softmax(scores + row * keys, first + row, block, size.window);
        multiply(output + at.output + first * at.output_width, at.output_width, {scores, keys},
                 {qkv + at.value + block.first_key * width, width}, rows, size.head_size, keys);
      }
    }
  }
}

void attention_backward(float* dqkv, const float* doutput, const float* qkv, const float* output,
                        const float* log_sum_exp, const AttentionSize& size, float* scratch) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(size.head_size));
  const std::int64_t d = size.head_size, width = (size.heads + 2 * size.kv_heads) * d;
  std::fill(dqkv, dqkv + size.batch * size.sequence * width, 0.0F);
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence) {
    for (std::int64_t head = 0; head < size.heads; ++head) {
      const HeadPlace at = place_of(sequence, head, size);
      for (std::int64_t first = 0; first < size.sequence; first += kBlockRows) {
        const Block block = block_at(first, size);
        const std::int64_t rows = block.rows(), keys = block.keys();
        const Panel query_rows{qkv + at.query + first * width, width};
        const Panel key_rows{qkv + at.key + block.first_key * width, width};
        const Panel value_rows{qkv + at.value + block.first_key * width, width};
        const Panel doutput_rows{doutput + at.output + first * at.output_width, at.output_width};
        const float* output_rows = output + at.output + first * at.output_width;
        float* scores = scratch;                      // [rows, keys], then the probabilities, then the scores' gradient
        float* dprobability = scratch + rows * keys;  // [rows, keys]

        multiply_transposed(scores, keys, query_rows, key_rows, rows, keys, d, scale);
        for (std::int64_t row = 0; row < rows; ++row)
          softmax_again(scores + row * keys, first + row, log_sum_exp[at.statistics + first + row], block, size.window);
        accumulate_transposed(dqkv + at.value + block.first_key * width, width, {scores, keys}, doutput_rows, keys, d,
                              rows);
        multiply_transposed(dprobability, keys, doutput_rows, value_rows, rows, keys, d, 1.0F);
        for (std::int64_t row = 0; row < rows; ++row) {
          const float* dout = doutput_rows.data + row * doutput_rows.stride;
          const float* out = output_rows + row * at.output_width;
          const float mean = lane_sum(d, [&](std::int64_t c) { return dout[c] * out[c]; });
          float* p = scores + row * keys;
          const float* dp = dprobability + row * keys;
          for (std::int64_t key = 0; key < keys; ++key) p[key] *= scale * (dp[key] - mean);
        }
        multiply(dqkv + at.query + first * width, width, {scores, keys}, key_rows, rows, d, keys);
        accumulate_transposed(dqkv + at.key + block.first_key * width, width, {scores, keys}, query_rows, keys, d,
                              rows);
      }
    }
  }
}

}  // namespace plumb
