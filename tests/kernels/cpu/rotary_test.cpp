#include "kernels/cpu/rotary.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {
// Two sequences of 5 tokens, 3 of a row's 4 heads turned, 4 of 6 channels of each.
constexpr RotarySize kRotarySize{
    .tokens = 10, .sequence = 5, .heads = 3, .head_size = 6, .row_width = 24, .rotary_size = 4};
}  // namespace

TEST_CASE("turning back undoes the turn: the backward is the transpose of a rotation") {
  const Values before = random_values(kRotarySize.tokens * kRotarySize.row_width, 1);
  const Values table = rotary_table(kRotarySize.sequence, kRotarySize.rotary_size, 10000.0);
  Values x = before;
  rotary(x.data(), table.data(), kRotarySize, RotaryDirection::kForward);
  CHECK(relative_difference(x, before) > 0.1);
  rotary(x.data(), table.data(), kRotarySize, RotaryDirection::kBackward);
  CHECK(relative_difference(x, before) < 1e-6);
}

TEST_CASE("the gradient of the turn agrees with finite differences") {
  Values x = random_values(kRotarySize.tokens * kRotarySize.row_width, 1);
  const Values dy = random_values(x.size(), 2),
               table = rotary_table(kRotarySize.sequence, kRotarySize.rotary_size, 10000.0);
  Values dx = dy;
  rotary(dx.data(), table.data(), kRotarySize, RotaryDirection::kBackward);
  const auto objective = [&] {
    Values y = x;
    rotary(y.data(), table.data(), kRotarySize, RotaryDirection::kForward);
    return weighted_sum(dy, y);
  };
  CHECK(gradient_error(x, dx, objective) < kGradientTolerance);
}

TEST_CASE("the first token, the heads beyond and the channels beyond are left alone") {
  const Values before = random_values(kRotarySize.tokens * kRotarySize.row_width, 1);
  const Values table = rotary_table(kRotarySize.sequence, kRotarySize.rotary_size, 10000.0);
  Values x = before;
  rotary(x.data(), table.data(), kRotarySize, RotaryDirection::kForward);
  for (std::int64_t i = 0; i < kRotarySize.row_width; ++i) CHECK(x[i] == before[i]);
  for (std::int64_t token = 0; token < kRotarySize.tokens; ++token)
    for (std::int64_t i = 0; i < kRotarySize.row_width; ++i)
      if (i >= 18 || i % 6 >= 4)
        CHECK(x[token * kRotarySize.row_width + i] == before[token * kRotarySize.row_width + i]);
}

TEST_CASE("the product of a turned query and key depends on their distance alone") {
  const RotarySize size{.tokens = 8, .sequence = 8, .heads = 1, .head_size = 4, .row_width = 4, .rotary_size = 4};
  const Values table = rotary_table(8, 4, 10000.0);
  Values query, key;
  for (int token = 0; token < 8; ++token) {
    query.insert(query.end(), {0.3F, -0.7F, 1.1F, 0.2F});
    key.insert(key.end(), {-0.5F, 0.4F, 0.9F, 0.6F});
  }
  rotary(query.data(), table.data(), size, RotaryDirection::kForward);
  rotary(key.data(), table.data(), size, RotaryDirection::kForward);
  const auto product = [&](int i, int j) {
    double sum = 0;
    for (int c = 0; c < 4; ++c) sum += double(query[i * 4 + c]) * double(key[j * 4 + c]);
    return sum;
  };
  CHECK(product(3, 1) == doctest::Approx(product(7, 5)).epsilon(1e-5));
  CHECK(product(3, 1) != doctest::Approx(product(4, 1)).epsilon(1e-3));
}

}  // namespace plumb::test
