#include "executor/spec/division/context_division.h"

#include <doctest/doctest.h>

#include <set>

namespace plumb::test {
namespace {

/// Returns the pairs of query and key that a causal mask leaves to the queries at these positions.
std::int64_t query_key_pairs(const ContextTokens& tokens) {
  std::int64_t sum = 0;
  for (const TokenRange& run : {tokens.first, tokens.second})
    for (std::int64_t t = run.first; t < run.first + run.count; ++t) sum += t + 1;
  return sum;
}

}  // namespace

TEST_CASE("the ranks' tokens are disjoint and cover the sequence") {
  for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses})
    for (const int ranks : {1, 2, 4}) {
      std::set<std::int64_t> seen;
      for (int rank = 0; rank < ranks; ++rank) {
        const ContextTokens tokens = context_tokens({0, 48}, {ranks, rank, attention});
        CHECK(tokens.count() == 48 / ranks);
        for (const TokenRange& run : {tokens.first, tokens.second})
          for (std::int64_t t = run.first; t < run.first + run.count; ++t) CHECK(seen.insert(t).second);
      }
      CHECK(seen.size() == 48);
    }
}

TEST_CASE("in a ring every rank has as much to attend to") {
  // Runs have c tokens. Rank r has runs r and 2n-1-r, whose pairs add up to c * (2n c + 1) for every r.
  const std::int64_t c = 48 / 8;
  for (int rank = 0; rank < 4; ++rank)
    CHECK(query_key_pairs(context_tokens({0, 48}, {4, rank, ContextAttention::kRing})) == c * (8 * c + 1));
}

TEST_CASE("what cannot be shared is said with its numbers") {
  const TransformerLayer block{.hidden = 16, .heads = 8, .kv_heads = 4, .head_size = 2, .ffn = 24};
  CHECK(why_not_shared(block, {48}, {.ranks = 4}, 1).empty());
  CHECK(why_not_shared(block, {44}, {.ranks = 4}, 1) ==
        "sequences of 44 tokens cannot be cut into 8 runs for 4 context ranks; choose a multiple of 8");
  CHECK(why_not_shared(block, {44}, {.ranks = 4, .attention = ContextAttention::kUlysses}, 1).empty());
  CHECK(why_not_shared(block, {44}, {.ranks = 4, .attention = ContextAttention::kUlysses}, 2)
            .starts_with("4 heads and 2 kv heads a tensor rank cannot be divided over 4 context ranks"));
  CHECK(why_not_shared(block, {48, 3}, {.ranks = 2}, 1).empty());
  CHECK(why_not_shared(block, {48, 2}, {.ranks = 8}, 1) ==
        "slices of 24 tokens cannot be cut into 16 runs for 8 context ranks; choose a multiple of 16");
}

TEST_CASE("context ranks share the tokens of a slice") {
  const ContextTokens ring = context_tokens({24, 24}, {.ranks = 2, .rank = 1});
  CHECK(ring.first.first == 30);
  CHECK(ring.second.first == 36);
  CHECK(ring.count() == 12);
  const ContextTokens all_to_all =
      context_tokens({24, 24}, {.ranks = 2, .rank = 1, .attention = ContextAttention::kUlysses});
  CHECK(all_to_all.first.first == 36);
  CHECK(all_to_all.count() == 12);
}

}  // namespace plumb::test
