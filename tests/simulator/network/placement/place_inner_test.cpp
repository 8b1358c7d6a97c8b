#include "simulator/network/placement/place_inner.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

Fabric two_nodes_of_four() {
  return fabric_of(FabricSpec{.nodes = 2,
                              .devices_per_node = 4,
                              .port_bytes_per_second = 400e9,
                              .nics_per_node = 4,
                              .nic_bytes_per_second = 50e9});
}

Segment inner_collective(Group group, CollectiveKind kind) {
  return {.kind = Segment::Kind::kCollective, .seconds = Seconds{1}, .group = group, .collective = kind, .bytes = 1};
}

}  // namespace

TEST_SUITE("place_inner") {
  TEST_CASE("an all-to-all sends an equal part to every other rank: within the node over ports, else over NICs") {
    const Fabric fabric = two_nodes_of_four();
    const Route inside = all_to_all_route(fabric, {0, 1, 2, 3});
    for (const auto& [link, share] : shares_by_name(fabric, inside)) CHECK(share == doctest::Approx(1));
    // Three of seven others are on the node. Of the four beyond, one hangs on the same leaf; a trunk carries the three
    // others' bytes of both ranks of its rail.
    for (const auto& [link, share] : shares_by_name(fabric, all_to_all_route(fabric, {0, 1, 2, 3, 4, 5, 6, 7}))) {
      const double sevenths = link.starts_with("nic") ? 4 : link.starts_with("trunk") ? 6 : 3;
      CHECK(share == doctest::Approx(sevenths / 7));
    }
    CHECK(all_to_all_route(fabric, {1}).uses.empty());
  }

  TEST_CASE("each group that a stage's actions exchange in has a flow, over the devices of its rank") {
    const Fabric fabric = two_nodes_of_four();
    const Schedule schedule = lowered("1f1b", 2, 2);
    CostTable costs = whole_costs(2, 1, 2);
    auto& forward = costs.stages[1].segments[static_cast<std::size_t>(Op::kForward)].front();
    forward.push_back(inner_collective(Group::kTensor, CollectiveKind::kAllReduce));
    forward.push_back(inner_collective(Group::kExpert, CollectiveKind::kAllToAll));
    forward.push_back(inner_collective(Group::kPipeline, CollectiveKind::kAllReduce));
    const ProcessGrid grid{.tensor = 2, .data = 2, .pipeline = 2};
    const NetworkSpec network =
        with_inner_collectives(place(fabric, 4, {.tensor = 2, .context = 2, .pipeline = 2}, schedule, costs), fabric, 4,
                               {.ranks = grid, .experts = {.context = 4, .pipeline = 2}}, schedule, costs);
    REQUIRE(network.inner.size() == 3);
    CHECK(network.inner[0].replicas == std::vector<int>{0, 1});
    CHECK(network.inner[0].volume_ratio == 1);
    CHECK(network.routes[network.inner[0].route] == ring_route(fabric, 4, {4, 5}));
    CHECK(network.inner[1].replicas == std::vector<int>{2, 3});
    CHECK(network.inner[2].group == Group::kExpert);
    CHECK(network.inner[2].replicas == std::vector<int>{0, 1, 2, 3});
    CHECK(network.inner[2].volume_ratio == 0.75);
    CHECK(network.routes[network.inner[2].route] == all_to_all_route(fabric, {4, 5, 6, 7}));
    for (const InnerCollective& flow : network.inner) CHECK(flow.stage == 1);
  }

  TEST_CASE("grids of other ranks, and groups that do not work inside actions, are refused") {
    const Fabric fabric = two_nodes_of_four();
    const Schedule schedule = lowered("1f1b", 2, 2);
    const CostTable costs = whole_costs(2, 1, 2);
    const ProcessGrid grid{.tensor = 2, .data = 2, .pipeline = 2};
    const NetworkSpec placed = place(fabric, 4, {.tensor = 2, .context = 2, .pipeline = 2}, schedule, costs);
    CHECK_THROWS_AS(
        with_inner_collectives(placed, fabric, 4, {.ranks = grid, .experts = {.pipeline = 2}}, schedule, costs),
        SpecError);
    CHECK_THROWS_WITH_AS(inner_group_ranks({.ranks = grid, .experts = grid}, Group::kData, 0),
                         "no data group works inside an action: name tensor, context or expert", SpecError);
  }
}

}  // namespace plumb::test
