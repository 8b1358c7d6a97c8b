#include "simulator/network/topology/topology.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {
namespace {

Topology two_devices_on_a_switch() {
  return {.vertices = {"a", "b", "switch"},
          .devices = {0, 1},
          .links = {{"a up", 0, 2, 1e9, Seconds{1e-6}},
                    {"a down", 2, 0, 1e9, Seconds{1e-6}},
                    {"b up", 1, 2, 1e9, Seconds{1e-6}},
                    {"b down", 2, 1, 1e9, Seconds{2e-6}}}};
}

}  // namespace

TEST_SUITE("topology") {
  TEST_CASE("a path is the directed links from device to device, and its latency their sum") {
    const Topology topology = two_devices_on_a_switch();
    check_topology(topology);
    CHECK(shortest_path(topology, 0, 1) == std::vector<int>{0, 3});
    CHECK(shortest_path(topology, 1, 0) == std::vector<int>{2, 1});
    CHECK(shortest_path(topology, 0, 0).empty());
    CHECK(path_latency(topology, {0, 3}).count() == doctest::Approx(3e-6));
  }

  TEST_CASE("fewer links win, and the first listed where several ways are equally short") {
    Topology ring{.vertices = {"0", "1", "2", "3"}, .devices = {0, 1, 2, 3}};
    for (int d = 0; d < 4; ++d) {
      ring.links.push_back({"on", d, (d + 1) % 4, 1e9});
      ring.links.push_back({"back", (d + 1) % 4, d, 1e9});
    }
    CHECK(shortest_path(ring, 0, 1) == std::vector<int>{0});
    CHECK(shortest_path(ring, 0, 3) == std::vector<int>{7});
    CHECK(shortest_path(ring, 0, 2) == std::vector<int>{0, 2});
  }

  TEST_CASE("devices that no links connect are named") {
    Topology topology = two_devices_on_a_switch();
    topology.links.pop_back();
    CHECK_THROWS_WITH_AS(shortest_path(topology, 0, 1),
                         "no links lead from device 0 (a) to device 1 (b), which exchange data: connect them",
                         SpecError);
    CHECK_THROWS_WITH_AS(shortest_path(topology, 0, 2), "device 2 is not in the topology: give 0 to 1", SpecError);
  }

  TEST_CASE("a link without capacity or without ends is refused") {
    for (const double capacity : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
      Topology topology = two_devices_on_a_switch();
      topology.links[1].bytes_per_second = capacity;
      CHECK_THROWS_AS(check_topology(topology), SpecError);
    }
    Topology topology = two_devices_on_a_switch();
    topology.links[1].to = 3;
    CHECK_THROWS_WITH_AS(check_topology(topology),
                         "link a down goes from vertex 2 to vertex 3, but the topology has 3 vertices", SpecError);
    topology = two_devices_on_a_switch();
    topology.devices = {0, 0};
    CHECK_THROWS_WITH_AS(check_topology(topology), "devices 0 and 1 are both vertex a: give each its own", SpecError);
    topology = two_devices_on_a_switch();
    topology.links[0].latency = Seconds{-1};
    CHECK_THROWS_AS(check_topology(topology), SpecError);
  }
}

}  // namespace plumb::test
