#include "kernels/cpu/attention/attention_piece.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

namespace plumb::test {
namespace {

std::vector<float> waves(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(step * static_cast<float>(i + 1));
  return values;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(double(a[i]) - double(b[i])));
  return worst;
}

}  // namespace

TEST_CASE("pieces in any order add up to attention in one go, forward and backward") {
  // There are 150 tokens, so queries run over more than one block of 64 rows. Keys come in runs of 70, 1 and 79, some
  // of which lie wholly in the future.
  const std::vector<std::int64_t> bounds = {0, 70, 71, 150};
  for (const auto& [window, value_size, softcap] :
       std::vector<std::tuple<std::int64_t, std::int64_t, float>>{{0, 0, 0.0F}, {20, 0, 0.0F}, {0, 5, 0.8F}}) {
    CAPTURE(window);
    CAPTURE(value_size);
    const AttentionSize size{.batch = 2,
                             .sequence = 150,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_size = 8,
                             .window = window,
                             .dropout = {.probability = window > 0 ? 0.25 : 0.0, .first_sample = 5},
                             .value_size = value_size,
                             .softcap = softcap};
    const auto out = static_cast<std::size_t>(size.output_width()), tokens = std::size_t{2 * 150};
    const auto key_value_width = static_cast<std::size_t>(size.key_value_width());
    const std::size_t width = static_cast<std::size_t>(size.query_width()) + key_value_width;
    const std::vector<float> qkv = waves(tokens * width, 0.37F), doutput = waves(tokens * out, 0.11F);
    std::vector<float> keys_values(tokens * key_value_width);
    const AttentionSlice all{.size = size, .first = 0, .count = 150};
    keep_keys_values(keys_values.data(), qkv.data(), all);
    std::vector<float> output(tokens * out), log_sum_exp(2 * 4 * 150), dqkv(qkv.size());
    std::vector<float> scratch(static_cast<std::size_t>(attention_scratch_elements(size)));
    attention_forward(output.data(), log_sum_exp.data(), qkv.data(), size, scratch.data());
    attention_backward(dqkv.data(), doutput.data(), qkv.data(), output.data(), log_sum_exp.data(), size,
                       scratch.data());

    std::vector<float> merged(output.size()), merged_lse(log_sum_exp.size(), -std::numeric_limits<float>::infinity());
    std::vector<float> added(qkv.size()), dkeys_values(keys_values.size());
    const auto for_each_piece = [&](auto visit) {
      for (std::size_t q = 0; q < 3; ++q)
        for (std::size_t k = 3; k-- > 0;) {
          const auto run = [&](std::size_t i) {
            return AttentionRun{150, bounds[i], bounds[i], bounds[i + 1] - bounds[i]};
          };
          const AttentionPiece piece{size, run(q), run(k)};
          std::vector<float> room(static_cast<std::size_t>(attention_piece_scratch_elements(piece)));
          visit(piece, room.data());
        }
    };
    for_each_piece([&](const AttentionPiece& piece, float* room) {
      attention_piece_forward(merged.data(), merged_lse.data(), qkv.data(), keys_values.data(), piece, room);
    });
    for_each_piece([&](const AttentionPiece& piece, float* room) {
      attention_piece_backward(added.data(), dkeys_values.data(), doutput.data(), qkv.data(), keys_values.data(),
                               merged.data(), merged_lse.data(), piece, room);
    });
    take_keys_values(added.data(), dkeys_values.data(), all);
    // The sums are fp32 in another order; values are of order 1.
    CHECK(largest_difference(merged, output) <= 1e-5);
    CHECK(largest_difference(merged_lse, log_sum_exp) <= 1e-5);
    CHECK(largest_difference(added, dqkv) <= 1e-5);
  }
}

TEST_CASE("rows of a buffer that are no tokens of the piece are left alone") {
  // The buffer has 4 rows of each of 2 sequences. The piece is its rows 2 and 3, tokens 6 and 7, and its keys are 0 and
  // 1.
  const AttentionSize size{.batch = 2, .heads = 1, .kv_heads = 1, .head_size = 2};
  const AttentionPiece piece{size, {4, 2, 6, 2}, {2, 0, 0, 2}};
  const std::vector<float> qkv = waves(2 * 4 * 6, 0.5F), keys_values = waves(2 * 2 * 4, 0.3F);
  std::vector<float> output(2 * 4 * 2, 0), log_sum_exp(2 * 4, -std::numeric_limits<float>::infinity());
  std::vector<float> room(static_cast<std::size_t>(attention_piece_scratch_elements(piece)));
  attention_piece_forward(output.data(), log_sum_exp.data(), qkv.data(), keys_values.data(), piece, room.data());
  for (const std::size_t row : {0UL, 1UL, 4UL, 5UL}) {
    CHECK(output[2 * row] == 0);
    CHECK(std::isinf(log_sum_exp[row]));
  }
  for (const std::size_t row : {2UL, 3UL, 6UL, 7UL}) CHECK(std::isfinite(log_sum_exp[row]));
}

}  // namespace plumb::test
