#include "kernels/cpu/attention/attention.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

std::int64_t qkv_elements(const AttentionSize& size) {
  return size.batch * size.sequence * (size.query_width() + size.key_value_width());
}
std::int64_t output_elements(const AttentionSize& size) {
  return size.batch * size.sequence * size.output_width();
}

Values forward(const Values& qkv, const AttentionSize& size) {
  Values output(output_elements(size)), statistics(size.batch * size.heads * size.sequence);
  Values scratch(attention_scratch_elements(size));
  attention_forward(output.data(), statistics.data(), qkv.data(), size, scratch.data());
  return output;
}

Values backward(const Values& qkv, const Values& doutput, const AttentionSize& size) {
  Values output(output_elements(size)), statistics(size.batch * size.heads * size.sequence), dqkv(qkv.size(), 7.0F);
  Values scratch(attention_scratch_elements(size));
  attention_forward(output.data(), statistics.data(), qkv.data(), size, scratch.data());
  attention_backward(dqkv.data(), doutput.data(), qkv.data(), output.data(), statistics.data(), size, scratch.data());
  return dqkv;
}

/// Attention and its gradient term by term, in double, with the whole row of probabilities.
struct Naive {
  std::vector<double> output, dqkv;
};
Naive naive(const Values& qkv, const Values& doutput, const AttentionSize& z) {
  const std::int64_t d = z.head_size, w = z.value_channels(), out_width = z.output_width();
  const std::int64_t width = z.query_width() + z.key_value_width();
  Naive result{std::vector<double>(output_elements(z)), std::vector<double>(qkv.size())};
  for (std::int64_t b = 0; b < z.batch; ++b)
    for (std::int64_t head = 0; head < z.heads; ++head)
      for (std::int64_t i = 0; i < z.sequence; ++i) {
        const std::int64_t kv = head * z.kv_heads / z.heads;
        const auto query = (b * z.sequence + i) * width + head * d;
        const auto key = [&](std::int64_t j) { return (b * z.sequence + j) * width + (z.heads + kv) * d; };
        const auto value = [&](std::int64_t j) {
          return (b * z.sequence + j) * width + (z.heads + z.kv_heads) * d + kv * w;
        };
        const auto out = (b * z.sequence + i) * out_width + head * w;
        const std::int64_t first = z.window > 0 ? std::max<std::int64_t>(0, i - z.window + 1) : 0;
        const double scale = 1 / std::sqrt(double(d));
        std::vector<double> p(z.sequence, 0), dp(z.sequence, 0), slope(z.sequence, 1);
        double sum = 0, mean = 0;
        for (std::int64_t j = first; j <= i; ++j) {
          double score = 0;
          for (std::int64_t c = 0; c < d; ++c) score += double(qkv[query + c]) * double(qkv[key(j) + c]);
          score *= scale;
          if (z.softcap > 0) {
            const double bounded = std::tanh(score / double(z.softcap));
            score = double(z.softcap) * bounded;
            slope[j] = 1 - bounded * bounded;
          }
          sum += p[j] = std::exp(score);
        }
        for (std::int64_t j = first; j <= i; ++j) {
          p[j] /= sum;
          float keep = 1;
          if (z.dropout.probability > 0) drop_probabilities(&keep, &keep, z.dropout, b, head, i, j, 1);
          for (std::int64_t c = 0; c < w; ++c) {
            result.output[out + c] += keep * p[j] * double(qkv[value(j) + c]);
            dp[j] += keep * double(doutput[out + c]) * double(qkv[value(j) + c]);
            result.dqkv[value(j) + c] += keep * p[j] * double(doutput[out + c]);
          }
          mean += p[j] * dp[j];
        }
        for (std::int64_t j = first; j <= i; ++j) {
          const double dscore = p[j] * (dp[j] - mean) * scale * slope[j];
          for (std::int64_t c = 0; c < d; ++c) {
            result.dqkv[query + c] += dscore * double(qkv[key(j) + c]);
            result.dqkv[key(j) + c] += dscore * double(qkv[query + c]);
          }
        }
      }
  return result;
}

Values as_floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("attention and its gradient agree with the s^2 reference for full, grouped, windowed and odd shapes") {
  const std::vector<AttentionSize> sizes = {
      {.batch = 2, .sequence = 1, .heads = 2, .kv_heads = 2, .head_size = 4},
      {.batch = 1, .sequence = 130, .heads = 2, .kv_heads = 2, .head_size = 5},
      {.batch = 2, .sequence = 67, .heads = 4, .kv_heads = 2, .head_size = 8},
      {.batch = 1, .sequence = 64, .heads = 6, .kv_heads = 1, .head_size = 3},
      {.batch = 1, .sequence = 150, .heads = 2, .kv_heads = 1, .head_size = 4, .window = 9},
      {.batch = 1, .sequence = 100, .heads = 1, .kv_heads = 1, .head_size = 4, .window = 1},
      {.batch = 1, .sequence = 70, .heads = 1, .kv_heads = 1, .head_size = 4, .window = 500},
      {.batch = 2, .sequence = 67, .heads = 4, .kv_heads = 2, .head_size = 8, .dropout = {.probability = 0.3}},
      {.batch = 2, .sequence = 67, .heads = 3, .kv_heads = 3, .head_size = 8, .value_size = 5},
      {.batch = 1, .sequence = 70, .heads = 4, .kv_heads = 2, .head_size = 4, .value_size = 7, .softcap = 2},
      {.batch = 2, .sequence = 67, .heads = 2, .kv_heads = 1, .head_size = 8, .window = 30, .softcap = 0.5},
      {.batch = 1,
       .sequence = 90,
       .heads = 2,
       .kv_heads = 1,
       .head_size = 4,
       .window = 20,
       .dropout = {.probability = 0.5, .key = {.seed = 4}, .first_sample = 3, .first_head = 6}},
  };
  for (const AttentionSize& size : sizes) {
    CAPTURE(size.sequence);
    CAPTURE(size.window);
    const Values qkv = random_values(qkv_elements(size), 5, 2.0F), doutput = random_values(output_elements(size), 6);
    const Naive expected = naive(qkv, doutput, size);
    CHECK(relative_difference(forward(qkv, size), as_floats(expected.output)) < 1e-5);
    CHECK(relative_difference(backward(qkv, doutput, size), as_floats(expected.dqkv)) < 1e-5);
  }
}

TEST_CASE("the gradient of attention agrees with finite differences") {
  const AttentionSize size{.batch = 1, .sequence = 9, .heads = 2, .kv_heads = 1, .head_size = 3, .window = 5};
  Values qkv = random_values(qkv_elements(size), 5);
  const Values doutput = random_values(output_elements(size), 6);
  const Values dqkv = backward(qkv, doutput, size);
  CHECK(gradient_error(qkv, dqkv, [&] { return weighted_sum(doutput, forward(qkv, size)); }) < kGradientTolerance);
}

TEST_CASE("slices, forth in order and back in reverse, are attention over the whole sequence") {
  for (const AttentionSize& size :
       {AttentionSize{.batch = 2, .sequence = 7, .heads = 4, .kv_heads = 2, .head_size = 3},
        AttentionSize{.batch = 1, .sequence = 150, .heads = 2, .kv_heads = 1, .head_size = 4},
        AttentionSize{
            .batch = 1, .sequence = 50, .heads = 2, .kv_heads = 2, .head_size = 4, .value_size = 3, .softcap = 1},
        AttentionSize{.batch = 3, .sequence = 131, .heads = 2, .kv_heads = 2, .head_size = 5, .window = 20},
        AttentionSize{.batch = 2,
        .sequence = 40,
        .heads = 2,
        .kv_heads = 1,
        .head_size = 4,
        .dropout = {.probability = 0.25, .first_head = 2}}}) {
    const Values qkv = random_values(qkv_elements(size), 5, 2.0F), doutput = random_values(output_elements(size), 6);
    const std::int64_t width = size.query_width() + size.key_value_width(), out = size.output_width();
    // Returns the rows of a slice within those of whole sequences.
    const auto rows_of = [&](const Values& all, const AttentionSlice& slice, std::int64_t columns) {
      Values rows;
      for (std::int64_t b = 0; b < size.batch; ++b) {
        const auto first = all.begin() + (b * size.sequence + slice.first) * columns;
        rows.insert(rows.end(), first, first + slice.count * columns);
      }
      return rows;
    };
    for (const std::int64_t slices : {1, 2, 3, 7}) {
      Values keys_values(size.batch * size.sequence * 2 * size.kv_heads * size.head_size, NAN);
      Values dkeys_values(keys_values.size(), 0.0F), scratch(attention_scratch_elements(size));
      std::vector<AttentionSlice> parts;
      std::vector<Values> outputs, statistics;
      for (std::int64_t k = 0; k < slices; ++k) {
        const std::int64_t first = k * size.sequence / slices;
        parts.push_back({size, first, (k + 1) * size.sequence / slices - first});
        outputs.emplace_back(size.batch * parts[k].count * out);
        statistics.emplace_back(size.batch * size.heads * parts[k].count);
        const Values own = rows_of(qkv, parts[k], width);
        keep_keys_values(keys_values.data(), own.data(), parts[k]);
        attention_slice_forward(outputs[k].data(), statistics[k].data(), own.data(), keys_values.data(), parts[k],
                                scratch.data());
        CHECK(relative_difference(outputs[k], rows_of(forward(qkv, size), parts[k], out)) < 1e-5);
      }
      const Values expected = backward(qkv, doutput, size);
      for (std::int64_t k = slices; k-- > 0;) {
        const Values own = rows_of(qkv, parts[k], width);
        Values dqkv(own.size(), 7.0F);
        attention_slice_backward(dqkv.data(), dkeys_values.data(), rows_of(doutput, parts[k], out).data(), own.data(),
                                 keys_values.data(), outputs[k].data(), statistics[k].data(), parts[k], scratch.data());
        take_keys_values(dqkv.data(), dkeys_values.data(), parts[k]);
        CHECK(relative_difference(dqkv, rows_of(expected, parts[k], width)) < 1e-5);
      }
    }
  }
}

TEST_CASE("attention does not overflow where scores are large") {
  const AttentionSize size{.batch = 1, .sequence = 8, .heads = 1, .kv_heads = 1, .head_size = 2};
  for (const float value : forward(random_values(qkv_elements(size), 5, 100.0F), size)) CHECK(std::isfinite(value));
}

}  // namespace plumb::test
