#include "simulator/network/placement/place.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

Fabric nodes_of(int nodes, int devices) {
  return fabric_of(FabricSpec{.nodes = nodes,
                              .devices_per_node = devices,
                              .port_bytes_per_second = 400e9,
                              .nics_per_node = devices,
                              .nic_bytes_per_second = 50e9});
}

}  // namespace

TEST_SUITE("place") {
  TEST_CASE("a ring inside a node loads every port once each way") {
    const Fabric fabric = nodes_of(1, 4);
    const Route ring = ring_route(fabric, 4, {0, 1, 2, 3});
    const std::map<std::string, double> shares = shares_by_name(fabric, ring);
    CHECK(shares.size() == 8);
    for (const auto& [link, share] : shares) CHECK(share == 1);
    CHECK(ring.weight == 1);
  }

  TEST_CASE("across nodes each of the g rings takes 1/g of the bytes over its own NIC and (g-1)/g over the ports") {
    const Fabric fabric = nodes_of(2, 4);
    const Route rings = ring_route(fabric, 4, {0, 1, 2, 3, 4, 5, 6, 7});
    const std::map<std::string, double> shares = shares_by_name(fabric, rings);
    CHECK(rings.weight == 4);
    CHECK(shares.size() == 8 * 2 + 8 * 2);
    for (const auto& [link, share] : shares) CHECK(share == (link.starts_with("nic") ? 0.25 : 0.75));
  }

  TEST_CASE("one rank a node makes one ring over the NICs alone") {
    const Fabric fabric = nodes_of(3, 4);
    const std::map<std::string, double> shares = shares_by_name(fabric, ring_route(fabric, 4, {1, 5, 9}));
    CHECK(shares.size() == 6);
    CHECK(shares.at("nic_up:node2.1") == 1);
    CHECK(ring_route(fabric, 4, {1}).uses.empty());
  }

  TEST_CASE("volumes are those of nccl-tests' bus factors") {
    CHECK(ring_volume_ratio(CollectiveKind::kAllReduce, 4) == 1.5);
    CHECK(ring_volume_ratio(CollectiveKind::kAllGather, 4) == 0.75);
    CHECK(ring_volume_ratio(CollectiveKind::kReduceScatter, 4) == 0.75);
    CHECK(ring_volume_ratio(CollectiveKind::kBroadcast, 4) == 1);
  }

  TEST_CASE("messages go from a replica to the same replica of the next rank, collectives over the data group") {
    const Schedule schedule =
        lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 2}), {.data = {.enabled = true}});
    CostTable costs = whole_costs(2, 1, 2);
    price_collectives(costs, 1000, Seconds{1});
    // World ranks: tp 2, dp 2, pp 2; a node a pipeline rank.
    const Fabric fabric = nodes_of(2, 4);
    const NetworkSpec network = place(fabric, 4, {.tensor = 2, .context = 2, .pipeline = 2}, schedule, costs);
    CHECK(network.replicas == 4);
    for (int replica = 0; replica < 4; ++replica) {
      const Route& there = network.routes[network.activation_route[2 * replica]];
      CHECK(shares_by_name(fabric, there).contains("nic_up:node0." + std::to_string(replica)));
      CHECK(shares_by_name(fabric, there).contains("nic_down:node1." + std::to_string(replica)));
      CHECK(network.activation_route[2 * replica + 1] == kNoRoute);
      CHECK(network.gradient_route[2 * replica] == kNoRoute);
    }
    int reductions = 0;
    for (const CollectiveFlow& flow : network.collectives) {
      if (flow.op != Op::kReduceGrad) continue;
      ++reductions;
      CHECK(flow.replicas.size() == 2);
      CHECK(flow.replicas[1] == flow.replicas[0] + 2);
      CHECK(flow.volume_ratio == 1);
    }
    CHECK(reductions == 4);
  }

  TEST_CASE("the sum over copies of a stage is one flow over the rings of all copies") {
    const Schedule schedule =
        lower(make_schedule("chimera", {.ranks = 2, .microbatches = 2}), {.data = {.enabled = true}});
    CostTable costs = whole_costs(4, 1, 2);
    price_collectives(costs, 1000, Seconds{1});
    const Fabric fabric = nodes_of(4, 1);
    const NetworkSpec network = place(fabric, 1, {.context = 2, .pipeline = 2}, schedule, costs);
    for (const CollectiveFlow& flow : network.collectives) {
      if (flow.op == Op::kReduceGrad) CHECK(shares_by_name(fabric, network.routes[flow.route]).size() == 8);
    }
  }
}

}  // namespace plumb::test
