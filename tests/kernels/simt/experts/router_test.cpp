#include "kernels/simt/experts/router.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE("GPU routers pick and weigh as the CPU's, forward and backward") {
  RouterSize size{.tokens = 14, .experts = 37, .picks = 5};
  const Values of_weights = random_values(14 * 5, 2), added = random_values(2 * 37, 3), biases = random_values(37, 4);
  for (const int variant : {0, 1, 2, 3})
    for (const float* extra : {added.data(), static_cast<const float*>(nullptr)}) {
      const bool renormalised = variant % 2 == 1;
      size.sigmoid = variant > 1;
      const float* bias = size.sigmoid ? biases.data() : nullptr;
      Values expected = random_values(14 * 37, 1, 3.0F), weights(14 * 5), own_weights(14 * 5);
      for (std::size_t i = 0; i < 37; ++i) expected[i] = 1;  // of equal ones the first comes first
      Values own = expected;
      std::vector<std::int32_t> picks(14 * 5), own_picks(14 * 5);
      router_forward(expected.data(), picks.data(), size, bias);
      pick_weights(weights.data(), expected.data(), picks.data(), size, renormalised);
      run_on_host(simt::RouterForward{own.data(), own_picks.data(), own_weights.data(), size, renormalised, bias},
                  kBlocks, 8);
      CHECK(own_picks == picks);
      Values excess = random_values(37, 5), own_excess = excess;
      add_excess_picks(excess.data(), picks.data(), size);
      run_on_host(simt::AddExcessPicks{own_excess.data(), own_picks.data(), size}, kBlocks, 8);
      CHECK(relative_difference(own_excess, excess) < kFloatTolerance);
      CHECK(relative_difference(own, expected) < kFloatTolerance);
      CHECK(relative_difference(own_weights, weights) < kFloatTolerance);
      router_backward(expected.data(), of_weights.data(), picks.data(), size, renormalised, extra, 7);
      run_on_host(simt::RouterBackward{own.data(), of_weights.data(), picks.data(), size, renormalised, extra, 7},
                  kBlocks, 8);
      CHECK(relative_difference(own, expected) < 10 * kFloatTolerance);
    }
}

TEST_CASE("GPU routers pick from the same groups of experts as the CPU's") {
  const Values biases = random_values(36, 4);
  for (const bool sigmoid : {false, true})
    for (const std::int64_t groups : {4, 9, 12}) {
      const RouterSize size{.tokens = 14,
                            .experts = 36,
                            .picks = 6,
                            .sigmoid = sigmoid,
                            .expert_groups = groups,
                            .groups_per_token = groups == 4 ? 1 : 3};
      CAPTURE(groups);
      const float* bias = sigmoid ? biases.data() : nullptr;
      Values expected = random_values(14 * 36, 1, 3.0F), own_weights(14 * 6);
      for (std::size_t i = 0; i < 36; ++i) expected[i] = 1;  // of equal ones the first comes first
      Values own = expected;
      std::vector<std::int32_t> picks(14 * 6), own_picks(14 * 6);
      router_forward(expected.data(), picks.data(), size, bias);
      run_on_host(simt::RouterForward{own.data(), own_picks.data(), own_weights.data(), size, true, bias}, kBlocks, 8);
      CHECK(own_picks == picks);
    }
}

}  // namespace plumb::test
