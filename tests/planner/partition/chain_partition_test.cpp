#include "planner/partition/chain_partition.h"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "tests/planner/partition/chains.h"

namespace plumb::test {
namespace {

double slowest_part(const Chain& chain, const std::vector<int>& split) {
  double worst = 0;
  std::size_t node = 0;
  for (const int count : split) {
    double time = 0;
    for (int i = 0; i < count; ++i) time += chain.seconds[node++].count();
    worst = std::max(worst, time);
  }
  return worst;
}

/// Returns the best of all cuts of the chain into three.
double by_enumeration(const Chain& chain) {
  const auto nodes = static_cast<int>(chain.seconds.size());
  double best = 1e300;
  for (int first = 1; first + 1 < nodes; ++first)
    for (int second = 1; first + second < nodes; ++second)
      best = std::min(best, slowest_part(chain, {first, second, nodes - first - second}));
  return best;
}

}  // namespace

TEST_CASE("the slowest stage is as fast as any cut makes it, to the 1 % that fewer bytes may cost") {
  CHECK(*chain_partition(chain_of_times({1, 1, 1, 1, 1, 1}), {.parts = 3}) == std::vector{2, 2, 2});
  CHECK(*chain_partition(chain_of_times({4, 1, 1, 1, 1}), {.parts = 2}) == std::vector{1, 4});
  CHECK(*chain_partition(chain_of_times({1, 2}), {.parts = 2}) == std::vector{1, 1});
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    Chain chain;
    for (int i = 0; i < 12; ++i) chain.seconds.emplace_back(1 + static_cast<double>(random() % 1000));
    const auto split = chain_partition(chain, {.parts = 3});
    REQUIRE(split);
    CHECK(slowest_part(chain, *split) <= 1.01 * by_enumeration(chain));
  }
}

TEST_CASE("of cuts that are as fast the one with the fewest bytes is taken") {
  Chain chain = chain_of_times({2, 0, 0, 2});
  chain.cut_bytes = {0, 9, 1, 5, 0};
  CHECK(*chain_partition(chain, {.parts = 2}) == std::vector{2, 2});
}

TEST_CASE("a message that lasts longer than the stages moves the cut") {
  Chain chain = chain_of_times({2, 2, 2, 2});
  chain.cut_bytes = {0, 1, 100, 1, 0};
  CHECK(*chain_partition(chain, {.parts = 2}) == std::vector{2, 2});
  // 100 bytes at 10 a second last 10 s, longer than three nodes.
  const std::vector<int> moved = *chain_partition(chain, {.parts = 2, .bytes_per_second = {10}});
  CHECK(moved != std::vector{2, 2});
}

TEST_CASE("a slow part gets fewer nodes") {
  const Chain chain = chain_of_times({1, 1, 1, 1, 1, 1});
  CHECK(*chain_partition(chain, {.parts = 2, .slowness = {2, 1}}) == std::vector{2, 4});
  CHECK(chain_partition(chain, {.parts = 3, .slowness = {1, 4, 1}})->at(1) == 1);
}

TEST_CASE("weights, and activations of the micro-batches in flight, must fit") {
  Chain chain = chain_of_times({1, 1, 1, 1});
  chain.state_bytes = {1, 1, 1, 1};
  chain.activation_bytes = {2, 2, 2, 2};
  // The first stage holds two micro-batches: 2 nodes are 2 + 2 * 4 = 10, one node is 5; three nodes with one are 9.
  CHECK(*chain_partition(chain, {.parts = 2, .in_flight = {2, 1}, .bytes = {10, 10}}) == std::vector{2, 2});
  CHECK(*chain_partition(chain, {.parts = 2, .in_flight = {2, 1}, .bytes = {9, 9}}) == std::vector{1, 3});
  CHECK_FALSE(chain_partition(chain, {.parts = 2, .in_flight = {2, 1}, .bytes = {8, 8}}));
}

}  // namespace plumb::test
