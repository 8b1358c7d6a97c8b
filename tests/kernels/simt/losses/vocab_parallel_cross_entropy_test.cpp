#include "kernels/simt/losses/vocab_parallel_cross_entropy.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

/// Checks two ranks, the second with padding.
template <class S>
void check_parts(float cap) {
  constexpr std::int64_t kRows = 7, kColumns = 55, kWhole = 103;
  constexpr int kRanks = 2;
  std::vector<std::int32_t> targets;
  for (std::int32_t row = 0; row < kRows; ++row) targets.push_back(static_cast<std::int32_t>(row * 37 % kWhole));
  Values parts(kRanks * 3 * kRows), own_parts(parts.size());
  std::vector<std::vector<S>> logits;
  std::vector<Values> bounded;  // the CPU's, where they have been bounded with the parts
  std::vector<VocabPart> of_rank;
  for (int rank = 0; rank < kRanks; ++rank) {
    logits.push_back(stored<S>(random_values(kRows * kColumns, static_cast<unsigned>(rank + 1), 8.0F)));
    of_rank.push_back({.rows = kRows,
                       .columns = kColumns,
                       .first = rank * kColumns,
                       .valid = std::min<std::int64_t>(kColumns, kWhole - rank * kColumns),
                       .softcap = cap});
    bounded.push_back(widened_all(logits.back()));
    cross_entropy_parts(parts.data() + rank * 3 * kRows, bounded.back().data(), targets.data(), of_rank.back());
    run_on_host(simt::CrossEntropyParts<S>{own_parts.data() + rank * 3 * kRows, logits.back().data(), targets.data(),
                                           of_rank.back()},
                kBlocks, kLanes);
  }
  CHECK(relative_difference(own_parts, parts) < 1e-5);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    Values gradient = bounded[at];
    const double loss =
        cross_entropy_from_parts(gradient.data(), parts.data(), kRanks, targets.data(), of_rank[at], 0.25F);
    Values losses(kRows);
    run_on_host(simt::CrossEntropyFromParts<S>{losses.data(), logits[at].data(), own_parts.data(), kRanks,
                                               targets.data(), of_rank[at], 0.25F},
                kBlocks, kLanes);
    double own_loss = 0;
    for (const float each : losses) own_loss += static_cast<double>(each);
    CHECK(own_loss == doctest::Approx(loss).epsilon(1e-6));
    CHECK(relative_difference(widened_all(logits[at]), gradient) < tolerance<S>());
  }
}

}  // namespace

TEST_CASE("GPU cross-entropy of a divided vocabulary agrees with the CPU's") {
  for (const float cap : {0.0F, 5.0F}) {
    check_parts<float>(cap);
    check_parts<Bf16>(cap);
    check_parts<Fp16>(cap);
  }
}

}  // namespace plumb::test
