#include "planner/price/collective/nccl_point_to_point.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

NcclMachine h100_of_any_host() {
  return {.spec = {.generation = NcclGeneration::kHopper, .nvlink_sharp = true},
          .devices_per_node = 8,
          .link_bytes_per_second = 450e9,
          .nics = 8,
          .nic_bytes_per_second = 8 * 50e9};
}

constexpr std::int64_t kSentBytes = 1'000'000'000;

}  // namespace

TEST_CASE("a send takes the link inside the node or the device's share of the NICs") {
  const NcclEstimate inside = nccl_send(h100_of_any_host(), {.ranks = 2, .nodes = 1, .ranks_per_node = 2}, kSentBytes);
  CHECK(inside.latency.count() == doctest::Approx((8.4 + 3.4) * 1e-6));
  CHECK(inside.transfer.count() == doctest::Approx(1 / 370.8));
  const NcclEstimate outside = nccl_send(h100_of_any_host(), {.ranks = 2, .nodes = 2, .ranks_per_node = 1}, kSentBytes);
  CHECK(outside.latency.count() == doctest::Approx((8.4 + 14) * 1e-6));
  CHECK(outside.transfer.count() == doctest::Approx(1 / 48.0));
}

TEST_CASE("up to 16 KiB a channel a message goes by LL") {
  const GroupPlacement apart{.ranks = 2, .nodes = 2, .ranks_per_node = 1};
  CHECK(nccl_send(h100_of_any_host(), apart, 32 << 10).protocol == NcclProtocol::kLL);
  CHECK(nccl_send(h100_of_any_host(), apart, (32 << 10) + 1).protocol == NcclProtocol::kSimple);
}

TEST_CASE("an all-to-all over 6 nodes of 8 shows 56 GB/s of bus bandwidth for NICs of 48") {
  // NVIDIA/nccl-tests#267: 40 of 47 peers are outside the node, so that 48 GB/s become 48 x 47/40 = 56.4.
  const GroupPlacement group{.ranks = 48, .nodes = 6, .ranks_per_node = 8};
  const NcclEstimate estimate = nccl_all_to_all(h100_of_any_host(), group, kSentBytes);
  CHECK(kSentBytes * 47.0 / 48 / estimate.transfer.count() == doctest::Approx(56.4e9));
  CHECK(estimate.latency.count() == doctest::Approx((8.4 + 6 * 14) * 1e-6));  // 48 peers, 8 at a time
}

TEST_CASE("nodes of one device exchange everything by their NICs") {
  const NcclMachine machine{
      .spec = {.generation = NcclGeneration::kHopper}, .devices_per_node = 1, .nic_bytes_per_second = 50e9};
  const NcclEstimate estimate = nccl_all_to_all(machine, {.ranks = 4, .nodes = 4, .ranks_per_node = 1}, kSentBytes);
  CHECK(estimate.transfer.count() == doctest::Approx(3.0 / 4 / 48));
}

TEST_CASE("inside a node an all-to-all copies the rank's own part beside what it sends") {
  NcclMachine machine = h100_of_any_host();
  machine.copy_bytes_per_second = 1e12;
  const NcclEstimate estimate = nccl_all_to_all(machine, {.ranks = 8, .nodes = 1, .ranks_per_node = 8}, kSentBytes);
  CHECK(estimate.transfer.count() == doctest::Approx(7.0 / 8 / 370.8 + 1.0 / 8 / 1000));
}

}  // namespace plumb::test
