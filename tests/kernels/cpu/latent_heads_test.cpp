#include "kernels/cpu/latent_heads.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

constexpr LatentHeads kLatent{.rows = 2, .heads = 2, .head_size = 3, .shared = 1, .value_size = 2};

TEST_CASE("heads are joined to queries, keys that end with the shared channels, and values") {
  const Values queries = {1, 2, 3, 4, 5, 6, 101, 102, 103, 104, 105, 106}, shared = {7, 107};
  const Values keys_values = {10, 11, 20, 21, 12, 13, 22, 23, 110, 111, 120, 121, 112, 113, 122, 123};
  Values qkv(2 * (6 + 6 + 4));
  join_latent_heads(qkv.data(), queries.data(), shared.data(), keys_values.data(), kLatent);
  CHECK(qkv == Values{1,   2,   3,   4,   5,   6,   10,  11,  7,   12,  13,  7,   20,  21,  22,  23,
                      101, 102, 103, 104, 105, 106, 110, 111, 107, 112, 113, 107, 120, 121, 122, 123});
}

TEST_CASE("splitting is the transpose of joining") {
  const Values queries = random_values(12, 1), shared = random_values(2, 2), keys_values = random_values(16, 3);
  const Values dqkv = random_values(32, 4);
  Values qkv(32), dqueries(12), dshared(2), dkeys_values(16);
  join_latent_heads(qkv.data(), queries.data(), shared.data(), keys_values.data(), kLatent);
  split_latent_heads(dqueries.data(), dshared.data(), dkeys_values.data(), dqkv.data(), kLatent);
  CHECK(weighted_sum(dqkv, qkv) == doctest::Approx(weighted_sum(dqueries, queries) + weighted_sum(dshared, shared) +
                                                   weighted_sum(dkeys_values, keys_values))
                                       .epsilon(1e-6));
}

}  // namespace plumb::test
