#include "kernels/cpu/losses/vocab_parallel_cross_entropy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/losses/cross_entropy.h"

namespace plumb::test {

TEST_CASE("the parts of the vocabulary give the loss and the gradients of the whole") {
  // 5 rows over 10 tokens, on 1 to 4 ranks. With 3 ranks the last has 2 tokens and 2 columns of padding; with 4, one
  // and 2.
  constexpr std::int64_t rows = 5, vocab = 10;
  std::vector<float> logits(rows * vocab);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = 4 * std::sin(static_cast<float>(7 * i));
  const std::vector<std::int32_t> targets = {0, 9, 4, 3, 8};
  for (const int variant : {1, 2, 3, 4, 5, 6}) {
    CAPTURE(variant);
    const int ranks = variant > 4 ? variant - 3 : variant;
    const float cap = variant > 4 ? 1.5F : 0.0F;
    std::vector<float> whole = logits;
    const double expected = cross_entropy(whole.data(), targets.data(), rows, vocab, 0.25F, 0, cap);
    const std::int64_t columns = (vocab + ranks - 1) / ranks;
    std::vector<std::vector<float>> share(static_cast<std::size_t>(ranks));
    std::vector<float> parts(static_cast<std::size_t>(3 * ranks * rows));
    const auto part_of = [&](int rank) {
      const std::int64_t first = rank * columns;
      return VocabPart{rows, columns, first, std::clamp<std::int64_t>(vocab - first, 0, columns), cap};
    };
    for (int rank = 0; rank < ranks; ++rank) {
      const VocabPart part = part_of(rank);
      std::vector<float>& own = share[static_cast<std::size_t>(rank)];
      own.assign(static_cast<std::size_t>(rows * columns), 1e30F);  // padding must not be read
      for (std::int64_t r = 0; r < rows; ++r)
        std::copy_n(logits.begin() + r * vocab + part.first, part.valid, own.begin() + r * columns);
      cross_entropy_parts(parts.data() + 3 * rank * rows, own.data(), targets.data(), part);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const VocabPart part = part_of(rank);
      std::vector<float>& own = share[static_cast<std::size_t>(rank)];
      const double loss = cross_entropy_from_parts(own.data(), parts.data(), ranks, targets.data(), part, 0.25F);
      CHECK(loss == doctest::Approx(expected).epsilon(1e-6));  // fp32 sums in another order
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < part.valid; ++c)
          CHECK(std::abs(own[static_cast<std::size_t>(r * columns + c)] -
                         whole[static_cast<std::size_t>(r * vocab + part.first + c)]) <= 1e-6);
        for (std::int64_t c = part.valid; c < columns; ++c) CHECK(own[static_cast<std::size_t>(r * columns + c)] == 0);
      }
    }
  }
}

}  // namespace plumb::test
