#include "kernels/cpu/embedding.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {
constexpr EmbeddingSize kEmbeddingSize{.tokens = 6, .sequence = 3, .columns = 5};
const std::vector<std::int32_t> kTokenIds = {2, 0, 2, 3, 2, 0};  // a token repeats within and across sequences
}  // namespace

TEST_CASE("the gradients of both tables agree with finite differences, also for tokens that repeat") {
  Values table = random_values(4 * 5, 1), positions = random_values(3 * 5, 2);
  const Values dy = random_values(6 * 5, 3);
  Values dtable(table.size(), 0.0F), dpositions(positions.size(), 0.0F);
  embedding_backward(dtable.data(), dpositions.data(), dy.data(), kTokenIds.data(), kEmbeddingSize);
  const auto objective = [&] {
    Values y(6 * 5);
    embedding_forward(y.data(), kTokenIds.data(), table.data(), positions.data(), kEmbeddingSize);
    return weighted_sum(dy, y);
  };
  CHECK(gradient_error(table, dtable, objective) < kGradientTolerance);
  CHECK(gradient_error(positions, dpositions, objective) < kGradientTolerance);
}

TEST_CASE("without positions a row is the token's") {
  const Values table = random_values(4 * 5, 1);
  Values y(6 * 5);
  embedding_forward(y.data(), kTokenIds.data(), table.data(), nullptr, kEmbeddingSize);
  for (int t = 0; t < 6; ++t)
    for (int c = 0; c < 5; ++c) CHECK(y[t * 5 + c] == table[kTokenIds[t] * 5 + c]);
}

TEST_CASE("the rows of negative tokens are zeros, and take no gradient") {
  const std::vector<float> table = {1, 2, 3, 4}, positions = {10, 20};
  const std::vector<std::int32_t> tokens = {-1, 1};
  const EmbeddingSize size{.tokens = 2, .sequence = 1, .columns = 2};
  std::vector<float> y(4);
  embedding_forward(y.data(), tokens.data(), table.data(), positions.data(), size);
  CHECK(y == std::vector<float>{10, 20, 13, 24});
  std::vector<float> dtable(4), dpositions(2);
  embedding_backward(dtable.data(), dpositions.data(), y.data(), tokens.data(), size);
  CHECK(dtable == std::vector<float>{0, 0, 13, 24});
  CHECK(dpositions == std::vector<float>{23, 44});
}

}  // namespace plumb::test
