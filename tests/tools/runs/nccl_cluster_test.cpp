#include "tools/runs/nccl_cluster.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "planner/price/collective/collective_price.h"
#include "schedules/error.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kSizes[] = {1 << 10, 1 << 14, 1 << 18, 1 << 22};

/// Returns 10 us plus a nanosecond for each byte, and twice that for all-gathers.
Seconds time_of(CollectiveKind op, std::int64_t bytes) {
  return (op == CollectiveKind::kAllGather ? 2 : 1) * Seconds{1e-5 + 1e-9 * static_cast<double>(bytes)};
}

NcclMeasurement measured(int ranks) {
  NcclMeasurement result{.version = "2.28.0", .ranks = ranks};
  for (const CollectiveKind op :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduce, CollectiveKind::kShift})
    for (const std::int64_t bytes : kSizes)
      for (const bool in_place : {false, true}) {
        const Seconds time = in_place ? Seconds{1e-9} : time_of(op, bytes);
        result.samples.push_back(
            {.sample = {.op = op, .members = ranks, .bytes = bytes, .median = time, .fastest = time, .repeats = 7},
             .in_place = in_place});
      }
  // In the 2 s beside the all-reduce, compute did 1.5 s of work: x = 1/3. The gather has another slowdown.
  result.slowdowns = {
      {.members = ranks,
       .bytes = 1 << 26,
       .product_edge = 4096,
       .alone = Seconds{4.5},
       .beside = Seconds{5},
       .collective_alone = Seconds{1.5},
       .collective = Seconds{2},
       .repeats = 5},
      {.op = CollectiveKind::kAllGather, .alone = Seconds{4}, .beside = Seconds{5}, .collective = Seconds{2}}};
  return result;
}

ClusterSpec node(int devices) {
  ClusterSpec cluster{.name = "made up", .devices = devices};
  cluster.devices_per_node = devices;
  cluster.device = {.name = "a GPU",
                    .peak_flops_per_second = {{Precision::kBf16, 1e15}},
                    .memory_bytes = std::int64_t{1} << 36,
                    .memory_bytes_per_second = 3e12};
  cluster.node_link = LinkSpec{.bytes_per_second = 1e9, .efficiency = 0.5, .latency = Seconds{1}};
  return cluster;
}

bool says(const std::vector<std::string>& notes, const std::string& part) {
  return std::ranges::any_of(notes, [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("collectives of each group become tables, send and receive the node's link, and the slowdown stands there") {
  const ClusterFit fit = with_nccl(node(4), {measured(2), measured(4)}, "bf16", "2026-11-23");
  const ClusterSpec& cluster = fit.cluster;
  CHECK(cluster.collective_tables.size() == 4);  // 2 groups, and 2 kinds that are priced
  const CollectivePrices prices = collective_prices(cluster, 4);
  for (const int ranks : {2, 4})
    for (const std::int64_t bytes : kSizes) {
      const GroupPlacement placement{.ranks = ranks, .nodes = 1, .ranks_per_node = ranks};
      CHECK(collective_time(prices, placement, CollectiveKind::kAllReduce, bytes) ==
            time_of(CollectiveKind::kAllReduce, bytes));
      CHECK(collective_time(prices, placement, CollectiveKind::kAllGather, bytes) ==
            time_of(CollectiveKind::kAllGather, bytes));
    }
  CHECK(cluster.node_link->bytes_per_second == doctest::Approx(1e9).epsilon(1e-6));
  CHECK(cluster.node_link->latency.count() == doctest::Approx(1e-5).epsilon(1e-6));
  CHECK(cluster.node_link->efficiency == 1);
  CHECK(std::ranges::count(cluster.samples, "message", &KernelSample::kernel) == 4);
  CHECK(cluster.device.collective_slowdown == doctest::Approx(1.0 / 3));
  const ClusterSpec again = parse_cluster(to_json(cluster).dump(), "written");
  CHECK(again.device.collective_slowdown == doctest::Approx(1.0 / 3));
  REQUIRE(again.collective_tables.size() == 4);
  CHECK(again.collective_tables.front().bytes == cluster.collective_tables.front().bytes);
  const std::string source = again.sources.at("device.collective_slowdown");
  for (const char* part : {"2026-11-23", "4096 x 4096", "bf16", "65536 KiB", "2.28.0", "4 GPUs"})
    CHECK(source.find(part) != std::string::npos);
}

TEST_CASE("a cluster with NCCL's constants keeps its links, and has its constants fitted") {
  ClusterSpec base = node(4);
  base.nccl = NcclSpec{.generation = NcclGeneration::kHopper};
  base.node_link = LinkSpec{.bytes_per_second = 2e9, .latency = Seconds{1e-6}};
  const ClusterFit fit = with_nccl(base, {measured(4)}, "bf16", "2026-11-23");
  CHECK(fit.cluster.node_link == base.node_link);
  CHECK(!fit.constants.empty());
  CHECK(fit.cluster.nccl->calibration != base.nccl->calibration);
  CHECK(fit.cluster.collective_tables.size() == 2);
}

TEST_CASE("where no slowdown is known none is made up") {
  NcclMeasurement starved = measured(2);
  starved.slowdowns.front().beside = Seconds{7};  // 2.5 s are lost in a collective of 2 s
  ClusterSpec base = node(2);
  base.device.collective_slowdown = 0.125;
  const ClusterFit kept = with_nccl(base, {starved}, "fp32", "2026-11-23");
  CHECK(kept.cluster.device.collective_slowdown == 0.125);
  CHECK(says(kept.notes, "nothing was computed"));
  starved.slowdowns.clear();
  CHECK(says(with_nccl(base, {starved}, "fp32", "2026-11-23").notes, "no products were timed"));
  const ClusterFit alone = with_nccl(base, {measured(1)}, "fp32", "2026-11-23");
  CHECK(says(alone.notes, "one GPU has nobody"));
  CHECK(alone.cluster.collective_tables.empty());
  CHECK(alone.cluster.node_link == base.node_link);
}

TEST_CASE("a node with fewer devices than a group is refused") {
  CHECK_THROWS_WITH_AS(with_nccl(node(2), {measured(4)}, "bf16", "2026-11-23"), doctest::Contains("4 ranks on a node"),
                       SpecError);
}

}  // namespace plumb::test
