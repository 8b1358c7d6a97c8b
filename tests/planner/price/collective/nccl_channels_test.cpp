#include "planner/price/collective/nccl_channels.h"

#include <doctest/doctest.h>

#include "tests/planner/price/collective/one_node.h"

namespace plumb::test {
namespace {

NcclMachine nodes_of_eight(NcclGeneration generation, double link_gb_per_s, double nics_gb_per_s, int nics = 8) {
  return {.spec = {.generation = generation, .nvlink_sharp = generation >= NcclGeneration::kHopper},
          .devices_per_node = 8,
          .link_bytes_per_second = link_gb_per_s * 1e9,
          .nics = nics,
          .nic_bytes_per_second = nics_gb_per_s * 1e9};
}

constexpr GroupPlacement kFourNodes{.ranks = 32, .nodes = 4, .ranks_per_node = 8};

/// Compares with (channels, GB/s inside, GB/s between).
void check_channels(const NcclChannels& channels, int count, double inside, double between) {
  CHECK(channels.count == count);
  CHECK(channels.inside_bytes_per_second == doctest::Approx(inside * 1e9));
  CHECK(channels.between_bytes_per_second == doctest::Approx(between * 1e9));
}

}  // namespace

// The expected figures reproduce published bus bandwidths: 12 x 20 GB/s on 8 A100, 12 x 30 on 8 H100 and so on.

TEST_CASE("one node opens as many channels as its links feed, doubled at half the speed") {
  check_channels(nccl_graphs(nodes_of_eight(NcclGeneration::kVolta, 150, 0), kOneNode).ring, 6, 20, 20);
  check_channels(nccl_graphs(nodes_of_eight(NcclGeneration::kAmpere, 300, 0), kOneNode).ring, 12, 20, 20);
  check_channels(nccl_graphs(nodes_of_eight(NcclGeneration::kHopper, 450, 0), kOneNode).ring, 12, 30, 30);
  check_channels(nccl_graphs(nodes_of_eight(NcclGeneration::kBlackwell, 900, 0), kOneNode).ring, 16, 45, 45);
  check_channels(nccl_graphs(nodes_of_eight(NcclGeneration::kHopper, 450, 0), kOneNode).nvls, 8, 40, 40);
  check_channels(nccl_graphs(nodes_of_eight(NcclGeneration::kBlackwell, 900, 0), kOneNode).nvls, 8, 80, 80);
  CHECK(nccl_graphs(nodes_of_eight(NcclGeneration::kAmpere, 300, 0), kOneNode).nvls.count == 0);
}

TEST_CASE("several nodes open a channel for each NIC at what NIC and links carry") {
  const NcclGraphs h100 = nccl_graphs(nodes_of_eight(NcclGeneration::kHopper, 450, 400), kFourNodes);
  check_channels(h100.ring, 8, 45, 45);  // 8 x 48 would be more than the 371 GB/s of the links
  check_channels(h100.nvls, 8, 40, 48);
  const NcclMachine a100 = nodes_of_eight(NcclGeneration::kAmpere, 300, 50, 4);  // 4 x 100 Gb/s
  check_channels(nccl_graphs(a100, kFourNodes).ring, 4, 12, 12);
  check_channels(nccl_graphs(a100, kFourNodes).tree, 4, 24, 12);
  check_channels(nccl_graphs(nodes_of_eight(NcclGeneration::kAmpere, 300, 100, 4), kFourNodes).ring, 4, 24, 24);
}

TEST_CASE("a group of which g of 8 ranks share a node gets g / 8 of the NICs") {
  const NcclMachine h100 = nodes_of_eight(NcclGeneration::kHopper, 450, 400);
  check_channels(nccl_graphs(h100, {.ranks = 16, .nodes = 4, .ranks_per_node = 4}).ring, 4, 48, 48);
  check_channels(nccl_graphs(h100, {.ranks = 4, .nodes = 4, .ranks_per_node = 1}).ring, 1, 48, 48);
  // Two devices share each of 4 NICs: one of them has half of 12 GB/s.
  const NcclMachine a100 = nodes_of_eight(NcclGeneration::kAmpere, 300, 50, 4);
  check_channels(nccl_graphs(a100, {.ranks = 4, .nodes = 4, .ranks_per_node = 1}).ring, 1, 6, 6);
  CHECK(between_bytes_per_second(h100, {.ranks = 16, .nodes = 4, .ranks_per_node = 4}) == doctest::Approx(192e9));
}

TEST_CASE("rings that enter and leave a node by one NIC close over the host where no two ranks sit at it") {
  NcclMachine free = nodes_of_eight(NcclGeneration::kAmpere, 300, 100, 4);  // two devices at each of 4 x 200 Gb/s
  NcclMachine bound = free;
  bound.spec.host_crossing_bytes_per_second = 24e9;
  const auto between = [](const NcclMachine& of, int ranks_per_node) {
    const NcclChannels ring =
        nccl_graphs(of, {.ranks = 8 * ranks_per_node, .nodes = 8, .ranks_per_node = ranks_per_node}).ring;
    return ring.count * ring.between_bytes_per_second;
  };
  // A group of devices 0 and 4, or of 0, 2, 4 and 6, gets its share of the crossing. Of all eight, neighbours share a
  // NIC, and a single device is alone: neither crosses the host.
  CHECK(between(bound, 2) == doctest::Approx(6e9));
  CHECK(between(bound, 4) == doctest::Approx(12e9));
  CHECK(between(bound, 8) == doctest::Approx(between(free, 8)));
  CHECK(between(bound, 1) == doctest::Approx(between(free, 1)));
  CHECK(between(free, 2) == doctest::Approx(24e9));
  bound.spec.host_crossing_bytes_per_second = 1e12;  // more than the NICs carry
  CHECK(between(bound, 2) == doctest::Approx(between(free, 2)));
}

TEST_CASE("NICs faster than a channel have several, and faster NICs never carry less") {
  check_channels(nccl_graphs(nodes_of_eight(NcclGeneration::kAmpere, 1200, 400, 4), kFourNodes).ring, 8, 48, 48);
  for (const NcclGeneration generation :
       {NcclGeneration::kAmpere, NcclGeneration::kHopper, NcclGeneration::kBlackwell}) {
    double before = 0;
    for (double nics = 10; nics < 2000; nics *= 1.1) {
      const NcclChannels ring = nccl_graphs(nodes_of_eight(generation, 450, nics), kFourNodes).ring;
      const double bus = ring.count * ring.between_bytes_per_second;
      CAPTURE(nics);
      CHECK(bus >= before);
      before = bus;
    }
  }
}

TEST_CASE("channels that are given are taken") {
  NcclMachine given = nodes_of_eight(NcclGeneration::kHopper, 450, 400);
  given.spec.ring = given.spec.nvls =
      NcclChannels{.count = 3, .inside_bytes_per_second = 7e9, .between_bytes_per_second = 5e9};
  check_channels(nccl_graphs(given, kFourNodes).ring, 3, 7, 5);
  check_channels(nccl_graphs(given, kFourNodes).nvls, 3, 7, 5);
  CHECK(nccl_graphs(given, kFourNodes).tree.count == 8);
}

TEST_CASE("devices on PCIe 4 open two channels of 12 GB/s") {
  const NcclMachine pcie{.spec = {.generation = NcclGeneration::kAmpere, .nvlink = false},
                         .devices_per_node = 4,
                         .link_bytes_per_second = 32e9};
  check_channels(nccl_graphs(pcie, {.ranks = 4, .nodes = 1, .ranks_per_node = 4}).ring, 2, 12, 12);
}

}  // namespace plumb::test
