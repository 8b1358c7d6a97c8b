#include "planner/price/collective/resharding.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

// round_cluster has 100 GB/s and 1 us inside a node; this link has 10 GB/s and 10 us between the meshes.
const LinkCost kMeshLink{.latency = Seconds{10e-6}, .bytes_per_second = 10e9};
constexpr std::int64_t kActivationBytes = 80'000'000;

GroupPlacement inside(int ranks) {
  return {.ranks = ranks, .nodes = 1, .ranks_per_node = ranks};
}

ReshardingPrice priced_resharding(const TensorMesh& from, const TensorMesh& to, ReshardingKind kind) {
  return resharding(collective_prices(round_cluster(8), 4), kMeshLink, from, to, inside(to.tensor), kActivationBytes,
                    kind);
}

double resharding_s(const TensorMesh& from, const TensorMesh& to, ReshardingKind kind) {
  return priced_resharding(from, to, kind).time.count();
}

}  // namespace

TEST_CASE("between single devices every way is one message of the whole tensor") {
  for (const auto kind : {ReshardingKind::kDirect, ReshardingKind::kAllGather, ReshardingKind::kBroadcast}) {
    CHECK(resharding_s({}, {}, kind) == doctest::Approx(10e-6 + 8e-3).epsilon(1e-12));
    CHECK(priced_resharding({}, {}, kind).crossing_bytes == kActivationBytes);
  }
}

TEST_CASE("equal tensor groups send the copies, or a share each and gather it") {
  // Directly each of 4 ranks sends and receives 80 MB. With a gather it is 20 MB, and 3/4 of 80 MB at 100 GB/s in 3
  // hops.
  CHECK(resharding_s({.tensor = 4}, {.tensor = 4}, ReshardingKind::kDirect) ==
        doctest::Approx(10e-6 + 8e-3).epsilon(1e-12));
  CHECK(resharding_s({.tensor = 4}, {.tensor = 4}, ReshardingKind::kAllGather) ==
        doctest::Approx(10e-6 + 2e-3 + 3e-6 + 0.6e-3).epsilon(1e-12));
  CHECK(priced_resharding({.tensor = 4}, {.tensor = 4}, ReshardingKind::kDirect).crossing_bytes ==
        4 * kActivationBytes);
  CHECK(priced_resharding({.tensor = 4}, {.tensor = 4}, ReshardingKind::kAllGather).crossing_bytes == kActivationBytes);
}

TEST_CASE("from dp=2,tp=2 to dp=1,tp=4 two blocks join") {
  // 4 senders and 4 receivers move 20 MB each in 2 messages; the gather holds all 80 MB.
  CHECK(resharding_s({.data = 2, .tensor = 2}, {.tensor = 4}, ReshardingKind::kAllGather) ==
        doctest::Approx(20e-6 + 2e-3 + 3e-6 + 0.6e-3).epsilon(1e-12));
  // Directly 320 MB cross, 80 MB for each of the four.
  CHECK(resharding_s({.data = 2, .tensor = 2}, {.tensor = 4}, ReshardingKind::kDirect) ==
        doctest::Approx(20e-6 + 8e-3).epsilon(1e-12));
}

TEST_CASE("from tp=4 to dp=4 blocks are cut and nothing is copied") {
  for (const auto kind : {ReshardingKind::kDirect, ReshardingKind::kAllGather, ReshardingKind::kBroadcast}) {
    CHECK(resharding_s({.tensor = 4}, {.data = 4}, kind) == doctest::Approx(10e-6 + 2e-3).epsilon(1e-12));
  }
}

TEST_CASE("fewer devices on one side are what limits the other") {
  // The single sender's link carries all 80 MB, whatever the four receivers could take.
  CHECK(resharding_s({}, {.data = 4}, ReshardingKind::kDirect) == doctest::Approx(10e-6 + 8e-3).epsilon(1e-12));
  CHECK(resharding_s({.data = 4}, {}, ReshardingKind::kDirect) == doctest::Approx(40e-6 + 8e-3).epsilon(1e-12));
}

TEST_CASE("a broadcast passes a tile on in 16 chunks") {
  // A single sender has four receivers of the same tensor: 80 MB over one link, 3/16 more for the three hops behind it.
  CHECK(resharding_s({}, {.tensor = 4}, ReshardingKind::kBroadcast) ==
        doctest::Approx(40e-6 + 8e-3 * (1 + 3.0 / 16)).epsilon(1e-12));
}

TEST_CASE("a scattered destination takes shares and gathers nothing") {
  for (const auto kind : {ReshardingKind::kDirect, ReshardingKind::kAllGather, ReshardingKind::kBroadcast}) {
    CHECK(resharding_s({.tensor = 4}, {.tensor = 4, .scattered = true}, kind) ==
          doctest::Approx(10e-6 + 2e-3).epsilon(1e-12));
  }
}

TEST_CASE("the cheapest way is gathering where the destination's own links are fast") {
  const CollectivePrices prices = collective_prices(round_cluster(8), 4);
  const ReshardingPrice best =
      cheapest_resharding(prices, kMeshLink, {.tensor = 4}, {.tensor = 4}, inside(4), kActivationBytes);
  CHECK(best.kind == ReshardingKind::kAllGather);
  CHECK(resharding_name(best.kind) == "all-gather");
  CHECK(cheapest_resharding(prices, kMeshLink, {}, {}, inside(1), kActivationBytes).kind == ReshardingKind::kDirect);
}

TEST_CASE("a mesh without devices and a tensor without bytes are refused") {
  const CollectivePrices prices = collective_prices(round_cluster(8), 4);
  check_refused<SpecError>([&] { cheapest_resharding(prices, kMeshLink, {.data = 0}, {}, inside(1), 1); }, "sending",
                           "1 or more");
  check_refused<SpecError>([&] { cheapest_resharding(prices, kMeshLink, {}, {.tensor = -1}, inside(1), 1); },
                           "receiving", "1 or more");
  check_refused<SpecError>([&] { cheapest_resharding(prices, kMeshLink, {}, {}, inside(1), 0); }, "0 bytes",
                           "1 or more");
}

}  // namespace plumb::test
