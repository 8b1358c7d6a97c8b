#include "kernels/cpu/attention/sinks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

constexpr AttentionSize kSize{.batch = 2, .sequence = 5, .heads = 4, .kv_heads = 2, .head_size = 3, .window = 3};

/// Returns the summed product of the output with `doutput`, term by term in double.
double objective(const Values& qkv, const Values& sinks, const Values& doutput) {
  const std::int64_t d = kSize.head_size, width = (kSize.heads + 2 * kSize.kv_heads) * d;
  double sum = 0;
  for (std::int64_t b = 0; b < kSize.batch; ++b)
    for (std::int64_t head = 0; head < kSize.heads; ++head)
      for (std::int64_t i = 0; i < kSize.sequence; ++i) {
        const std::int64_t kv = head * kSize.kv_heads / kSize.heads;
        const auto at = [&](std::int64_t row, std::int64_t of_head, std::int64_t c) {
          return double(qkv[(b * kSize.sequence + row) * width + of_head * d + c]);
        };
        double total = std::exp(double(sinks[head])), weighed = 0;
        for (std::int64_t j = std::max<std::int64_t>(0, i - kSize.window + 1); j <= i; ++j) {
          double score = 0, value = 0;
          for (std::int64_t c = 0; c < d; ++c) {
            score += at(i, head, c) * at(j, kSize.heads + kv, c);
            value += at(j, kSize.heads + kSize.kv_heads + kv, c) *
                     double(doutput[(b * kSize.sequence + i) * kSize.heads * d + head * d + c]);
          }
          const double p = std::exp(score / std::sqrt(double(d)));
          total += p;
          weighed += p * value;
        }
        sum += weighed / total;
      }
  return sum;
}

}  // namespace

TEST_CASE("sinks take part in every query's softmax, and their gradients are its slopes") {
  const std::int64_t queries = kSize.batch * kSize.sequence, out = queries * kSize.heads * kSize.head_size;
  Values qkv = random_values(queries * (kSize.heads + 2 * kSize.kv_heads) * kSize.head_size, 1);
  Values sinks = random_values(kSize.heads, 2);
  const Values doutput = random_values(out, 3);
  Values output(out), log_sum_exp(queries * kSize.heads), scratch(attention_scratch_elements(kSize));
  attention_forward(output.data(), log_sum_exp.data(), qkv.data(), kSize, scratch.data());
  add_sinks(output.data(), log_sum_exp.data(), sinks.data(), kSize);
  double sum = 0;
  for (std::int64_t i = 0; i < out; ++i) sum += double(output[i]) * double(doutput[i]);
  CHECK(sum == doctest::Approx(objective(qkv, sinks, doutput)).epsilon(1e-5));

  Values dsinks(kSize.heads), dqkv(qkv.size());
  sinks_backward(dsinks.data(), doutput.data(), output.data(), log_sum_exp.data(), sinks.data(), kSize);
  attention_backward(dqkv.data(), doutput.data(), qkv.data(), output.data(), log_sum_exp.data(), kSize, scratch.data());
  CHECK(gradient_error(sinks, dsinks, [&] { return objective(qkv, sinks, doutput); }) < 1e-3);
  CHECK(gradient_error(qkv, dqkv, [&] { return objective(qkv, sinks, doutput); }) < 1e-3);
}

}  // namespace plumb::test
