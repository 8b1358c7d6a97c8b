#include "simulator/network/topology/fabric.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "schedules/error.h"

namespace plumb::test {
namespace {

std::vector<std::string> names(const Topology& topology, const std::vector<int>& path) {
  std::vector<std::string> found;
  for (const int link : path) {
    // Attachments of one PCIe host to one NIC stand side by side; they hold nothing up and any of them will do.
    if (!topology.links[link].name.starts_with("attachment")) found.push_back(topology.links[link].name);
  }
  return found;
}

FabricSpec two_nodes() {
  return {.nodes = 2,
          .devices_per_node = 4,
          .port_bytes_per_second = 400e9,
          .nics_per_node = 4,
          .nic_bytes_per_second = 50e9};
}

}  // namespace

TEST_SUITE("fabric") {
  TEST_CASE("inside a node a path crosses two ports, between nodes on one rail two NICs") {
    const FabricSpec spec = two_nodes();
    const Topology topology = fabric_topology(spec);
    CHECK(names(topology, fabric_path(spec, 1, 3)) == std::vector<std::string>{"port_up:rank1", "port_down:rank3"});
    CHECK(names(topology, fabric_path(spec, 1, 5)) == std::vector<std::string>{"nic_up:node0.1", "nic_down:node1.1"});
  }

  TEST_CASE("from rail to rail a path crosses the spine; leaves by node spare it") {
    FabricSpec spec = two_nodes();
    CHECK(names(fabric_topology(spec), fabric_path(spec, 1, 6)) ==
          std::vector<std::string>{"nic_up:node0.1", "trunk_up:leaf1", "trunk_down:leaf2", "nic_down:node1.2"});
    spec.leaves = Leaves::kByNode;
    CHECK(names(fabric_topology(spec), fabric_path(spec, 1, 6)) ==
          std::vector<std::string>{"nic_up:node0.1", "nic_down:node1.2"});
  }

  TEST_CASE("on a PCIe node the NIC's traffic crosses the device's port, and devices share NICs") {
    FabricSpec spec = two_nodes();
    spec.hub = NodeHub::kPcie;
    spec.nics_per_node = 2;
    CHECK(names(fabric_topology(spec), fabric_path(spec, 1, 4)) ==
          std::vector<std::string>{"port_up:rank1", "nic_up:node0.0", "nic_down:node1.0", "port_down:rank4"});
  }

  TEST_CASE("a trunk carries the rate of its leaf's NICs divided by the oversubscription") {
    FabricSpec spec = two_nodes();
    spec.nodes = 8;
    spec.nodes_per_leaf = 4;
    spec.oversubscription = 2;
    for (const Leaves leaves : {Leaves::kByRail, Leaves::kByNode}) {
      spec.leaves = leaves;
      const int nics = leaves == Leaves::kByRail ? 4 : 16;
      int trunks = 0;
      for (const TopologyLink& link : fabric_topology(spec).links) {
        if (!link.name.starts_with("trunk")) continue;
        ++trunks;
        CHECK(link.bytes_per_second == 50e9 * nics / 2);
      }
      CHECK(trunks == (leaves == Leaves::kByRail ? 2 * 8 : 2 * 2));
    }
  }

  TEST_CASE("the paths without a search are as short as those of the breadth-first search on the graph") {
    for (const NodeHub hub : {NodeHub::kNvSwitch, NodeHub::kPcie}) {
      for (const Leaves leaves : {Leaves::kByRail, Leaves::kByNode}) {
        for (const int nics : {1, 4}) {
          // With other numbers of NICs a search would also use NICs that are not the device's own.
          if (nics != (hub == NodeHub::kNvSwitch ? 4 : 1)) continue;
          FabricSpec spec = two_nodes();
          spec.nodes = 4;
          spec.nodes_per_leaf = 2;
          spec.hub = hub;
          spec.leaves = leaves;
          spec.nics_per_node = nics;
          const Topology topology = fabric_topology(spec);
          check_topology(topology);
          for (int from = 0; from < 16; ++from) {
            for (int to = 0; to < 16; ++to) {
              const std::vector<int> path = fabric_path(spec, from, to);
              const std::vector<int> searched = shortest_path(topology, from, to);
              REQUIRE(path.size() == searched.size());
              // From rail to rail, ways over the switch of either node are as short as that over the spine.
              if (from % 4 == to % 4) REQUIRE(names(topology, path) == names(topology, searched));
              for (std::size_t i = 1; i < path.size(); ++i) {
                REQUIRE(topology.links[path[i]].from == topology.links[path[i - 1]].to);
              }
            }
          }
        }
      }
    }
  }

  TEST_CASE("without a link its traffic goes the shortest other way, and all else as before") {
    // Two ways from a to b: direct, or over the switch.
    const Topology topology{
        .vertices = {"a", "b", "switch"},
        .devices = {0, 1},
        .links = {{"direct", 0, 1, 1e9}, {"back", 1, 0, 1e9}, {"up", 0, 2, 1e9}, {"down", 2, 1, 1e9}}};
    const Fabric whole = fabric_of(topology);
    CHECK(whole.path(0, 1) == std::vector<int>{0});
    const Fabric around = without_links(whole, topology, {0});
    CHECK(around.path(0, 1) == std::vector<int>{2, 3});
    CHECK(around.path(1, 0) == std::vector<int>{1});
    CHECK_THROWS_WITH_AS(without_links(whole, topology, {0, 3}).path(0, 1),
                         "without direct nothing leads from rank 0 to rank 1, which exchange data: leave a link "
                         "between them, or use other ranks",
                         SpecError);
  }

  TEST_CASE("numbers that make no network are refused with the remedy") {
    FabricSpec spec = two_nodes();
    spec.nics_per_node = 5;
    CHECK_THROWS_WITH_AS(fabric_topology(spec), "the network has 5 NICs a node: give 1 to as many as devices",
                         SpecError);
    spec = two_nodes();
    spec.nic_bytes_per_second = 0;
    CHECK_THROWS_WITH_AS(fabric_topology(spec), "the network has 0 bytes/s at a NIC: give a rate above 0", SpecError);
    spec = two_nodes();
    spec.oversubscription = -1;
    CHECK_THROWS_AS(fabric_topology(spec), SpecError);
    CHECK_THROWS_WITH_AS(fabric_path(two_nodes(), 0, 8), "rank 8 is not in the network: give 0 to 7", SpecError);
  }
}

}  // namespace plumb::test
