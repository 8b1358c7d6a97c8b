#include "kernels/simt/embedding.h"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_embedding() {
  constexpr EmbeddingSize kSize{.tokens = 63, .sequence = 7, .columns = 93};
  constexpr std::int64_t kVocabulary = 5;  // every token comes more often than rows are read at once
  std::vector<std::int32_t> tokens;
  for (int t = 0; t < kSize.tokens; ++t) tokens.push_back(t % 9 == 8 ? -1 : t * 3 % static_cast<int>(kVocabulary));
  const std::vector<S> table = stored<S>(random_values(kVocabulary * kSize.columns, 1)),
                       positions = stored<S>(random_values(kSize.sequence * kSize.columns, 2)),
                       dy = stored<S>(random_values(kSize.tokens * kSize.columns, 3));
  Values y(kSize.tokens * kSize.columns);
  embedding_forward(y.data(), tokens.data(), widened_all(table).data(), widened_all(positions).data(), kSize);
  std::vector<S> own_y(y.size());
  run_on_host(simt::EmbeddingForward<S>{own_y.data(), tokens.data(), table.data(), positions.data(), kSize}, kBlocks,
              kLanes);
  CHECK(relative_difference(widened_all(own_y), y) < tolerance<S>());

  Values dtable = random_values(kVocabulary * kSize.columns, 4),
         dpositions = random_values(kSize.sequence * kSize.columns, 5);
  Values own_dtable = dtable, own_dpositions = dpositions;
  embedding_backward(dtable.data(), dpositions.data(), widened_all(dy).data(), tokens.data(), kSize);
  std::vector<std::int32_t> order(kSize.tokens, -1), occurrences(kSize.tokens, -1);
  run_on_host(simt::TokenOrder{order.data(), occurrences.data(), tokens.data(), kSize.tokens}, kBlocks, kLanes);
  std::vector<std::int32_t> sorted(kSize.tokens);
  std::iota(sorted.begin(), sorted.end(), 0);
  std::ranges::stable_sort(sorted, {}, [&](std::int32_t t) { return tokens[static_cast<std::size_t>(t)]; });
  CHECK(order == sorted);
  run_on_host(
      simt::EmbeddingBackward<S>{own_dtable.data(), dy.data(), tokens.data(), order.data(), occurrences.data(), kSize},
      kBlocks, kLanes);
  run_on_host(simt::PositionBackward<S>{own_dpositions.data(), dy.data(), kSize}, kBlocks, kLanes);
  CHECK(own_dtable == dtable);  // the same sums in the same order
  CHECK(own_dpositions == dpositions);
}

}  // namespace

TEST_CASE("GPU embeddings agree with the CPU's, their gradients bit for bit") {
  check_embedding<float>();
  check_embedding<Bf16>();
  check_embedding<Fp16>();
}

}  // namespace plumb::test
