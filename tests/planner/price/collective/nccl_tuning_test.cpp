#include "planner/price/collective/nccl_tuning.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/planner/price/collective/one_node.h"

namespace plumb::test {
namespace {

NcclMachine amd_a100_node() {
  return {.spec = {.generation = NcclGeneration::kAmpere, .host_cpu = HostCpu::kAmd},
          .devices_per_node = 8,
          .link_bytes_per_second = 300e9,
          .nics = 8,
          .nic_bytes_per_second = 8 * 25e9};
}

NcclMachine intel_h100_node() {
  return {.spec = {.generation = NcclGeneration::kHopper, .host_cpu = HostCpu::kIntel, .nvlink_sharp = true},
          .devices_per_node = 8,
          .link_bytes_per_second = 450e9,
          .nics = 8,
          .nic_bytes_per_second = 8 * 50e9};
}

double microseconds(const NcclEstimate& estimate) {
  return (estimate.latency + estimate.transfer).count() * 1e6;
}

std::string name(const NcclEstimate& estimate) {
  return std::string(algorithm_name(estimate.algorithm)) + " " + protocol_name(estimate.protocol);
}

/// Returns the bus bandwidth as nccl-tests prints it, in GB/s.
double bus_bandwidth(const NcclEstimate& estimate, std::int64_t bytes, int ranks) {
  return static_cast<double>(bytes) / 1e3 / microseconds(estimate) * 2 * (ranks - 1) / ranks;
}

}  // namespace

TEST_CASE("the estimates that NCCL logged on 3 nodes of 8 H100 come out to 1e-7") {
  // NVIDIA/nccl#1453 logs "Bytes -> Algo 0 proto ... time"; its graphs have 8 channels of 24 GB/s and the plain tree.
  NcclMachine machine = intel_h100_node();
  machine.spec.nvlink_sharp = false;
  machine.spec.balanced_tree = false;
  machine.spec.ring = machine.spec.tree =
      NcclChannels{.count = 8, .inside_bytes_per_second = 24e9, .between_bytes_per_second = 24e9};
  const NcclTuning tuning =
      nccl_tuning(machine, {.ranks = 24, .nodes = 3, .ranks_per_node = 8}, CollectiveKind::kAllReduce);
  CHECK(microseconds(nccl_choice(tuning, 4096)) == doctest::Approx(25.874907).epsilon(1e-7));
  CHECK(microseconds(nccl_choice(tuning, 8192)) == doctest::Approx(26.549810).epsilon(1e-7));
  CHECK(microseconds(nccl_choice(tuning, 64 << 10)) == doctest::Approx(37.798233).epsilon(1e-7));
  CHECK(microseconds(nccl_choice(tuning, 128 << 10)) == doctest::Approx(51.603912).epsilon(1e-7));
  CHECK(name(nccl_choice(tuning, 64 << 10)) == "Tree LL");
  CHECK(name(nccl_choice(tuning, 128 << 10)) == "Tree LL128");
}

TEST_CASE("a ring of 8 A100 takes its hops and 7/4 of its bytes at 240 GB/s") {
  const NcclTuning tuning = nccl_tuning(amd_a100_node(), kOneNode, CollectiveKind::kAllReduce);
  const NcclEstimate large = nccl_choice(tuning, std::int64_t{1} << 30);
  CHECK(name(large) == "Ring Simple");
  CHECK(large.latency.count() == doctest::Approx((8.4 + 14 * 3.4) * 1e-6));
  CHECK(large.transfer.count() == doctest::Approx((1 << 30) * 1.75 / 240e9));
  // LL moves flags beside its data and reaches half the bus, here below the cap of 87.7 GB/s.
  const NcclEstimate ring = nccl_choice(tuning, 1024, NcclAlgorithm::kRing);
  CHECK(name(ring) == "Ring LL");
  CHECK(ring.latency.count() == doctest::Approx((6.6 + 14 * 0.6) * 1e-6));
  CHECK(ring.transfer.count() == doctest::Approx(1024 * 1.75 / 87.7e9));
}

TEST_CASE("switches that reduce win all-reduces on one node, and rings win gathers") {
  const std::int64_t bytes = std::int64_t{8} << 30;
  const NcclEstimate reduced = nccl_choice(nccl_tuning(intel_h100_node(), kOneNode, CollectiveKind::kAllReduce), bytes);
  CHECK(name(reduced) == "NVLS Simple");
  CHECK(bus_bandwidth(reduced, bytes, 8) == doctest::Approx(476).epsilon(0.001));
  CHECK(name(nccl_choice(nccl_tuning(intel_h100_node(), kOneNode, CollectiveKind::kAllGather), bytes)) ==
        "Ring Simple");
  // On 4 devices rings carry 360 GB/s and NVLS 306: NCCL uses rings again, as published runs on 4 H200 show.
  const GroupPlacement four{.ranks = 4, .nodes = 1, .ranks_per_node = 4};
  const NcclEstimate fewer = nccl_choice(nccl_tuning(intel_h100_node(), four, CollectiveKind::kAllReduce), bytes);
  CHECK(name(fewer) == "Ring Simple");
  CHECK(bus_bandwidth(fewer, bytes, 4) == doctest::Approx(360).epsilon(0.001));
}

TEST_CASE("across nodes NVLSTree carries 461 GB/s on two and 364 on more") {
  const std::int64_t bytes = std::int64_t{16} << 30;
  const auto bus = [&](int nodes) {
    const GroupPlacement group{.ranks = 8 * nodes, .nodes = nodes, .ranks_per_node = 8};
    const NcclEstimate chosen = nccl_choice(nccl_tuning(intel_h100_node(), group, CollectiveKind::kAllReduce), bytes);
    CHECK(name(chosen) == "NVLSTree Simple");
    return bus_bandwidth(chosen, bytes, 8 * nodes);
  };
  CHECK(bus(2) == doctest::Approx(461).epsilon(0.002));
  CHECK(bus(4) == doctest::Approx(364).epsilon(0.002));
}

TEST_CASE("a group with one rank a node gathers by PAT, and waits for the network as a tree does") {
  const GroupPlacement apart{.ranks = 4, .nodes = 4, .ranks_per_node = 1};
  const NcclTuning gather = nccl_tuning(amd_a100_node(), apart, CollectiveKind::kAllGather);
  const NcclEstimate pat = nccl_choice(gather, 1 << 20, NcclAlgorithm::kPat);
  CHECK(pat.latency.count() == doctest::Approx((8 + 2 * 14 / 3.5 + 2.8 * 4) * 1e-6));
  CHECK(pat.transfer.count() == doctest::Approx((1 << 20) / (0.75 * 24e9)));
  // LL has 3 steps, all of them crossings at the tree's 5 us.
  CHECK(nccl_choice(gather, 64, NcclAlgorithm::kRing).latency.count() == doctest::Approx((6.6 + 3 * 5) * 1e-6));
}

TEST_CASE("SHARP in the network enables CollNet and NVLS across nodes") {
  NcclMachine machine = intel_h100_node();
  const GroupPlacement group{.ranks = 32, .nodes = 4, .ranks_per_node = 8};
  const auto enabled = [&](NcclAlgorithm algorithm, CollectiveKind kind) {
    const NcclTuning tuning = nccl_tuning(machine, group, kind);
    return tuning.paths[static_cast<std::size_t>(algorithm)][2].bytes_per_second > 0;
  };
  using enum NcclAlgorithm;
  for (const NcclAlgorithm algorithm : {kCollNetDirect, kCollNetChain, kNvls}) {
    CHECK_FALSE(enabled(algorithm, CollectiveKind::kAllReduce));
  }
  machine.spec.network_sharp = true;
  for (const NcclAlgorithm algorithm : {kCollNetDirect, kCollNetChain, kNvls}) {
    CHECK(enabled(algorithm, CollectiveKind::kAllReduce));
  }
  CHECK(enabled(kCollNetDirect, CollectiveKind::kAllGather));
  CHECK_FALSE(enabled(kCollNetChain, CollectiveKind::kAllGather));
  const NcclTuning tuning = nccl_tuning(machine, group, CollectiveKind::kAllReduce);
  const NcclPath& chain = tuning.paths[static_cast<std::size_t>(kCollNetChain)][2];
  CHECK(chain.latency.count() == doctest::Approx((2 * 7 * 2.8 + 30) * 1e-6));
  CHECK(chain.bytes_per_second == doctest::Approx(8 * 45e9 / 2));
  // With 8 devices on 8 channels the factor is 1, and Hopper reaches .85 of it.
  const NcclPath& direct = tuning.paths[static_cast<std::size_t>(kCollNetDirect)][2];
  CHECK(direct.latency.count() == doctest::Approx((2 * (3.7 + 0.4 * 7) + 31) * 1e-6));
  CHECK(direct.bytes_per_second == doctest::Approx(8 * 45e9 / 2 * 0.85));
}

TEST_CASE("without NVLink there is no LL128, and hops take PCIe's time") {
  const NcclMachine machine{.spec = {.generation = NcclGeneration::kAmpere, .nvlink = false},
                            .devices_per_node = 8,
                            .link_bytes_per_second = 32e9};
  const NcclTuning tuning = nccl_tuning(machine, kOneNode, CollectiveKind::kAllReduce);
  const auto& ring = tuning.paths[static_cast<std::size_t>(NcclAlgorithm::kRing)];
  CHECK(ring[1].bytes_per_second == 0);
  CHECK(ring[2].latency.count() == doctest::Approx((8.4 + 14 * 5.7) * 1e-6));
}

TEST_CASE("the NIC's own latency counts once, and twice where Simple flushes") {
  NcclMachine machine = amd_a100_node();
  const GroupPlacement group{.ranks = 16, .nodes = 2, .ranks_per_node = 8};
  const auto tree = [&](std::size_t protocol) {
    return nccl_tuning(machine, group, CollectiveKind::kAllReduce).paths[0][protocol].latency.count();
  };
  const double ll = tree(0), simple = tree(2);
  machine.spec.nic_latency = Seconds{3e-6};
  CHECK(tree(0) - ll == doctest::Approx(2 * 3e-6));
  CHECK(tree(2) - simple == doctest::Approx(2 * 2 * 3e-6));
}

TEST_CASE("constants of the cluster change the time and not the choice") {
  const NcclTuning tuning = nccl_tuning(amd_a100_node(), kOneNode, CollectiveKind::kAllReduce);
  const NcclEstimate chosen = nccl_choice(tuning, 1 << 30);
  const NcclCalibration calibration{
      .low_latency_launch = Seconds{1}, .simple_launch = Seconds{50e-6}, .bandwidth_scale = 0.5};
  CHECK(calibrated(calibration, chosen).count() ==
        doctest::Approx(chosen.latency.count() + 50e-6 + 2 * chosen.transfer.count()));
  CHECK(calibrated({}, chosen).count() == doctest::Approx((chosen.latency + chosen.transfer).count()));
}

TEST_CASE("a tree's all-reduce is corrected by size between 64 B and 256 MiB") {
  CHECK(tree_correction(NcclProtocol::kLL, 63) == 1);
  CHECK(tree_correction(NcclProtocol::kSimple, 64) == 0.9);
  CHECK(tree_correction(NcclProtocol::kLL, 64 << 12) == 0.4);
  CHECK(tree_correction(NcclProtocol::kLL, (64 << 13) - 1) == 0.4);
  CHECK(tree_correction(NcclProtocol::kSimple, std::int64_t{64} << 23) == 1);
}

}  // namespace plumb::test
