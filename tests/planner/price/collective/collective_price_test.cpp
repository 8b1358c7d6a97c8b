#include "planner/price/collective/collective_price.h"

#include <algorithm>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kBufferBytes = 1'000'000'000;

double collective_s(int ranks, int nodes, int per_node, CollectiveKind kind) {
  const CollectivePrices prices = collective_prices(round_cluster(8), 4);
  return collective_time(prices, {.ranks = ranks, .nodes = nodes, .ranks_per_node = per_node}, kind, kBufferBytes)
      .count();
}

}  // namespace

// round_cluster has 100 GB/s and 1 us in a node, and 10 GB/s a device and 10 us between nodes.

TEST_CASE("collectives inside a node take alpha-beta ring times") {
  using enum CollectiveKind;
  CHECK(collective_s(4, 1, 4, kAllReduce) == doctest::Approx(2 * 3 * (1e-6 + 1e9 / (4 * 100e9))).epsilon(1e-12));
  CHECK(collective_s(4, 1, 4, kAllGather) == doctest::Approx(3 * (1e-6 + 1e9 / (4 * 100e9))).epsilon(1e-12));
  CHECK(collective_s(4, 1, 4, kReduceScatter) == collective_s(4, 1, 4, kAllGather));
  CHECK(collective_s(4, 1, 4, kBroadcast) == doctest::Approx(3e-6 + 1e9 / 100e9).epsilon(1e-12));
  CHECK(collective_s(4, 1, 4, kAllToAll) == doctest::Approx(3e-6 + 0.75 * 1e9 / 100e9).epsilon(1e-12));
}

TEST_CASE("a group of one costs nothing") {
  for (const auto kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kAllToAll}) {
    CHECK(collective_s(1, 1, 1, kind) == 0);
  }
}

TEST_CASE("a ring across nodes enters and leaves through the NICs of its ranks there") {
  using enum CollectiveKind;
  // 8 ranks on 2 nodes have 6 hops inside and 1 between each way; 4 NICs of 10 GB/s are slower than 100 GB/s inside.
  CHECK(collective_s(8, 2, 4, kAllGather) == doctest::Approx(6e-6 + 10e-6 + 7.0 / 8 * 1e9 / 40e9).epsilon(1e-12));
  CHECK(collective_s(8, 2, 4, kAllReduce) == doctest::Approx(2 * (6e-6 + 10e-6 + 7.0 / 8 * 1e9 / 40e9)).epsilon(1e-12));
  // With one rank a node its NIC works alone, and every hop goes between nodes.
  CHECK(collective_s(2, 2, 1, kAllReduce) == doctest::Approx(2 * (10e-6 + 0.5 * 1e9 / 10e9)).epsilon(1e-12));
  // In an all-to-all 3/8 of the bytes stay inside, 4/8 leave by the rank's own NIC, and 1/8 is the rank's own.
  CHECK(collective_s(8, 2, 4, kAllToAll) == doctest::Approx(7 * 10e-6 + 0.5 * 1e9 / 10e9).epsilon(1e-12));
}

TEST_CASE("in a full mesh a group uses only the links between its own devices") {
  using enum CollectiveKind;
  ClusterSpec cluster = round_cluster(8);
  cluster.wiring.hub = NodeHub::kMesh;  // 4 devices: each has 3 links of 33.3 GB/s
  const CollectivePrices prices = collective_prices(cluster, 4);
  const auto time = [&](int ranks, int nodes, int per_node, CollectiveKind kind) {
    return collective_time(prices, {.ranks = ranks, .nodes = nodes, .ranks_per_node = per_node}, kind, kBufferBytes)
        .count();
  };
  CHECK(time(4, 1, 4, kAllReduce) == collective_s(4, 1, 4, kAllReduce));
  CHECK(time(2, 1, 2, kAllReduce) == doctest::Approx(2 * (1e-6 + 0.5 * 1e9 / (100e9 / 3))).epsilon(1e-12));
  CHECK(time(3, 1, 3, kAllGather) == doctest::Approx(2e-6 + 2.0 / 3 * 1e9 / (200e9 / 3)).epsilon(1e-12));
  CHECK(time(2, 1, 2, kAllToAll) == doctest::Approx(1e-6 + 0.5 * 1e9 / (100e9 / 3)).epsilon(1e-12));
  CHECK(time(2, 2, 1, kAllReduce) == collective_s(2, 2, 1, kAllReduce));  // the mesh has no part in it
  CHECK(pipeline_link(prices, {.first = 0}, {.first = 1}, 4, 1).bytes_per_second == doctest::Approx(100e9 / 3));
  CHECK(pipeline_link(prices, {.first = 0}, {.first = 1}, 1, 1).bytes_per_second == doctest::Approx(10e9));
}

TEST_CASE("two MI300X exchange over one of seven links, as measured to 7 %") {
  // stas00/ml-engineering@744d01e network/README.md prints a bus bandwidth of 2 devices of 47.7 GB/s; the preset's
  // efficiency is that of 8.
  const CollectivePrices prices = collective_prices(preset_cluster("mi300x"), 8);
  const std::int64_t bytes = std::int64_t{16} << 30;
  const Seconds time =
      collective_time(prices, {.ranks = 2, .nodes = 1, .ranks_per_node = 2}, CollectiveKind::kAllReduce, bytes);
  CHECK(static_cast<double>(bytes) / time.count() == doctest::Approx(47.7e9).epsilon(0.07));
}

TEST_CASE("NCCL's model gives the published all-reduce of 72 GB200 on one NVLink domain to 2 %") {
  // coreweave/nccl-tests#43 prints for 8 GiB a bus bandwidth of 834.6 GB/s, 2 * 71 / 72 times the bytes a second.
  const CollectivePrices prices = collective_prices(preset_cluster("gb200-nvl72"), 72);
  const std::int64_t bytes = std::int64_t{8} << 30;
  const PricedCollective priced =
      price_collective(prices, {.ranks = 72, .nodes = 1, .ranks_per_node = 72}, CollectiveKind::kAllReduce, bytes);
  CHECK(priced.algorithm == "NVLS");
  CHECK(2 * 71.0 / 72 * static_cast<double>(bytes) / priced.time.count() == doctest::Approx(834.6e9).epsilon(0.02));
}

TEST_CASE("measured all-reduces come out as measured") {
  ClusterSpec cluster = round_cluster(4);
  cluster.samples = {{.kernel = "all_reduce", .shape = {1000, 4}, .median = Seconds{1e-3}, .busy_ranks = 4},
                     {.kernel = "all_reduce", .shape = {1000000, 4}, .median = Seconds{4e-3}, .busy_ranks = 4}};
  const CollectivePrices prices = collective_prices(cluster, 4);
  const GroupPlacement group{.ranks = 4, .nodes = 1, .ranks_per_node = 4};
  CHECK(collective_time(prices, group, CollectiveKind::kAllReduce, 1000).count() == doctest::Approx(1e-3));
  CHECK(collective_time(prices, group, CollectiveKind::kAllReduce, 1000000).count() == doctest::Approx(4e-3));
}

TEST_CASE("a cluster with an nccl block is priced by NCCL's choice, which is named") {
  const CollectivePrices prices = collective_prices(preset_cluster("h100:64"), 8);
  const GroupPlacement node{.ranks = 8, .nodes = 1, .ranks_per_node = 8};
  const auto named = [&](const GroupPlacement& group, CollectiveKind kind, std::int64_t bytes) {
    const PricedCollective priced = price_collective(prices, group, kind, bytes);
    return std::string(priced.algorithm) + " " + std::string(priced.protocol);
  };
  CHECK(named(node, CollectiveKind::kAllReduce, 8192) == "Ring LL");
  CHECK(named(node, CollectiveKind::kAllReduce, kBufferBytes) == "NVLS Simple");
  CHECK(named(node, CollectiveKind::kReduceScatter, kBufferBytes) == "Ring Simple");
  CHECK(named(node, CollectiveKind::kAllToAll, kBufferBytes) == "pairwise Simple");
  const GroupPlacement apart{.ranks = 4, .nodes = 4, .ranks_per_node = 1};
  CHECK(named(apart, CollectiveKind::kAllGather, kBufferBytes) == "Ring Simple");
  CHECK(price_collective(prices, {}, CollectiveKind::kAllReduce, kBufferBytes).time == Seconds{0});
  // A quarter of a node's ranks has a quarter of its NICs: 2 channels of 48 GB/s instead of 8 of 45 carry 7/8 of the
  // bytes instead of 31/32. That takes 3.4 times as long, except for the latency.
  const GroupPlacement whole{.ranks = 32, .nodes = 4, .ranks_per_node = 8};
  const GroupPlacement quarter{.ranks = 8, .nodes = 4, .ranks_per_node = 2};
  const double more = collective_time(prices, quarter, CollectiveKind::kAllGather, kBufferBytes) /
                      collective_time(prices, whole, CollectiveKind::kAllGather, kBufferBytes);
  CHECK(more > 3.1);
  CHECK(more < 3.4);
}

TEST_CASE("a measured table overrides the model, straight in logarithms") {
  ClusterSpec cluster = round_cluster(4);
  cluster.collective_tables = {{.kind = CollectiveKind::kAllGather,
                                .ranks = 4,
                                .bytes = {1000, 100'000},
                                .times = {Seconds{1e-3}, Seconds{9e-3}}}};
  const CollectivePrices prices = collective_prices(cluster, 4);
  const GroupPlacement group{.ranks = 4, .nodes = 1, .ranks_per_node = 4};
  const auto time = [&](std::int64_t bytes) {
    return collective_time(prices, group, CollectiveKind::kAllGather, bytes).count();
  };
  CHECK(time(1000) == doctest::Approx(1e-3));
  CHECK(time(100'000) == doctest::Approx(9e-3));
  CHECK(time(10'000) == doctest::Approx(3e-3));  // half way in log bytes, half way in log time
  CHECK(price_collective(prices, group, CollectiveKind::kAllGather, 10'000).algorithm == "measured");
  // Beyond the table's ends its last ratio to the model holds.
  const auto model = [](double bytes) { return 3 * (1e-6 + bytes / (4 * 100e9)); };
  CHECK(time(1'000'000) == doctest::Approx(9e-3 * model(1e6) / model(1e5)));
  CHECK(time(10) == doctest::Approx(1e-3 * model(10) / model(1000)));
  // Other groups and other collectives are modelled.
  CHECK(collective_time(prices, {.ranks = 2, .nodes = 1, .ranks_per_node = 2}, CollectiveKind::kAllGather, 1000) <
        Seconds{1e-5});
  CHECK(price_collective(prices, group, CollectiveKind::kReduceScatter, 1000).algorithm == "ring");
}

TEST_CASE("groups sit where the process grid puts them") {
  CHECK(placement_of({0, 1, 2, 3}, 4) == GroupPlacement{.ranks = 4, .nodes = 1, .ranks_per_node = 4});
  CHECK(placement_of({0, 2, 4, 6}, 4) == GroupPlacement{.ranks = 4, .nodes = 2, .ranks_per_node = 2});
  const ProcessGrid grid{.tensor = 2, .data = 4, .pipeline = 2};
  CHECK(worst_placement(grid, Group::kTensor, 0, 4) == GroupPlacement{.ranks = 2, .nodes = 1, .ranks_per_node = 2});
  CHECK(worst_placement(grid, Group::kData, 8, 4) == GroupPlacement{.ranks = 4, .nodes = 2, .ranks_per_node = 2});
  // Behind three other devices the first of four replicas lies on one node, the others on the next.
  CHECK(worst_placement({.data = 4}, Group::kData, 3, 4) ==
        GroupPlacement{.ranks = 4, .nodes = 2, .ranks_per_node = 1});
  // The second tensor group of 3 on nodes of 4, ranks 3 to 5, crosses nodes.
  CHECK(worst_placement({.tensor = 3, .data = 4}, Group::kTensor, 0, 4).nodes == 2);
}

TEST_CASE("pipeline neighbours exchange over the slowest of their devices' links") {
  const CollectivePrices prices = collective_prices(round_cluster(8), 4);
  const auto link = [&](const DeviceRange& source, const DeviceRange& destination) {
    return pipeline_link(prices, source, destination, 4, 1);
  };
  CHECK(link({.first = 0}, {.first = 1}).bytes_per_second == 100e9);
  CHECK(link({.first = 3}, {.first = 4}).bytes_per_second == 10e9);
  CHECK(link({.first = 3}, {.first = 4}).latency == Seconds{10e-6});
  CHECK(link({.first = 0, .count = 4}, {.first = 4, .count = 4}).bytes_per_second == 10e9);
  // Runs of two and one device in one node; of one and four devices, of which the last lies on the next node.
  CHECK(link({.first = 0, .count = 2}, {.first = 2, .count = 1}).bytes_per_second == 100e9);
  CHECK(link({.first = 0, .count = 1}, {.first = 1, .count = 4}).bytes_per_second == 10e9);
}

TEST_CASE("a message has a NIC's rate, a tensor group divides it, and a ring has its devices' shares") {
  ClusterSpec cluster = round_cluster(8);
  const auto message = [&](int tensor) {
    return pipeline_link(collective_prices(cluster, 4), {.first = 0, .count = 4}, {.first = 4, .count = 4}, 4, tensor)
        .bytes_per_second;
  };
  const auto ring = [&](int per_node) {
    return collective_time(collective_prices(cluster, 4),
                           {.ranks = 2 * per_node, .nodes = 2, .ranks_per_node = per_node}, CollectiveKind::kAllGather,
                           kBufferBytes);
  };
  CHECK(message(4) == 10e9);  // each device has a NIC
  const Seconds one = ring(1), all = ring(4);
  cluster.wiring.nics_per_node = 2;
  CHECK(message(1) == 10e9);
  CHECK(message(2) == 5e9);
  CHECK(message(4) == 5e9);
  cluster.network->bytes_per_second *= 2;  // as much for a node as before
  CHECK(ring(1) == one);
  CHECK(ring(4) == all);
  cluster.network->bytes_per_second = 1e12;
  CHECK(message(1) == 1e12);
  cluster.wiring.hub = NodeHub::kPcie;
  CHECK(message(1) == 100e9);  // a port's
}

TEST_CASE("runs in rows exchange within nodes only if every pair of their devices lies in one") {
  std::mt19937 random(7);
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
  int inside = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const int node = up_to(12), rows = up_to(40);
    const CollectivePrices prices = collective_prices(round_cluster(8), 4);
    DeviceRange source{.first = up_to(20), .together = up_to(4), .stride = up_to(30)};
    if (trial % 3 == 0) source.together = source.stride = 0;
    source.count = rows * std::max(source.together, 1);
    DeviceRange destination = source;
    destination.first += up_to(5) - 2;
    bool one_node = true;
    for (int i = 0; i < source.count; ++i) one_node = one_node && source.at(i) / node == destination.at(i) / node;
    inside += one_node ? 1 : 0;
    CHECK((pipeline_link(prices, source, destination, node, 1).bytes_per_second == 100e9) == one_node);
  }
  CHECK(inside > 50);
}

TEST_CASE("a missing link is asked for") {
  ClusterSpec cluster = round_cluster(4);
  cluster.node_link.reset();
  check_refused<SpecError>([&] { collective_prices(cluster, 4); }, "round", "node.bandwidth_gb_per_s");
  cluster = round_cluster(8);
  cluster.network.reset();
  check_refused<SpecError>([&] { collective_prices(cluster, 4); }, "round", "network");
}

}  // namespace plumb::test
