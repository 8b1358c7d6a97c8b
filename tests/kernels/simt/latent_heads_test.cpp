#include "kernels/simt/latent_heads.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE_TEMPLATE("GPU heads of latent attention are joined and split as the CPU's", S, float, Bf16, Fp16) {
  for (const LatentHeads& size : {LatentHeads{.rows = 7, .heads = 3, .head_size = 10, .shared = 4, .value_size = 5},
                                  LatentHeads{.rows = 2, .heads = 1, .head_size = 6, .shared = 6, .value_size = 9}}) {
    const std::int64_t queries = size.rows * size.heads * size.head_size, shared = size.rows * size.shared;
    const std::int64_t kv = size.rows * size.heads * size.key_value_size();
    const std::int64_t joined = 2 * queries + size.rows * size.heads * size.value_size;
    const std::vector<S> of_queries = stored<S>(random_values(queries, 1)),
                         of_shared = stored<S>(random_values(shared, 2)), of_kv = stored<S>(random_values(kv, 3));
    std::vector<S> qkv(joined), dqueries(queries), dshared(shared), dkv(kv);
    Values expected(joined), expected_queries(queries), expected_shared(shared), expected_kv(kv);
    join_latent_heads(expected.data(), widened_all(of_queries).data(), widened_all(of_shared).data(),
                      widened_all(of_kv).data(), size);
    run_on_host(simt::JoinLatentHeads<S>{qkv.data(), of_queries.data(), of_shared.data(), of_kv.data(), size}, kBlocks,
                kLanes);
    CHECK(widened_all(qkv) == expected);

    const std::vector<S> dqkv = stored<S>(random_values(joined, 4));
    split_latent_heads(expected_queries.data(), expected_shared.data(), expected_kv.data(), widened_all(dqkv).data(),
                       size);
    run_on_host(simt::SplitLatentHeads<S>{dqueries.data(), dshared.data(), dkv.data(), dqkv.data(), size}, kBlocks,
                kLanes);
    CHECK(widened_all(dqueries) == expected_queries);
    CHECK(relative_difference(widened_all(dshared), expected_shared) < tolerance<S>());
    CHECK(widened_all(dkv) == expected_kv);
  }
}

}  // namespace plumb::test
