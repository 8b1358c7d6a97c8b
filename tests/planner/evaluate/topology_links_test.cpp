#include "planner/evaluate/topology_links.h"

#include <doctest/doctest.h>

#include "planner/search/evaluate_plan.h"
#include "planner/search/plan.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/network/topology/fabric.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"
#include "tests/planner/round_plan.h"

namespace plumb::test {
namespace {

/// Two pipeline ranks of two replicas on a chain of four devices: replica 0 goes over the links 0-1 and 1-2, replica 1
/// over 1-2 and 2-3.
Topology chain(double first_rate = 10e9) {
  Topology topology{.vertices = {"0", "1", "2", "3"}, .devices = {0, 1, 2, 3}};
  for (int i = 0; i < 3; ++i) {
    topology.links.push_back({"on", i, i + 1, i == 0 ? first_rate : 10e9, Seconds{1e-6 * (1 + i)}});
    topology.links.push_back({"back", i + 1, i, i == 0 ? first_rate : 10e9, Seconds{1e-6 * (1 + i)}});
  }
  return topology;
}

constexpr ProcessGrid kGrid{.data = 2, .pipeline = 2};

/// The round cluster as a graph: nodes of four with a NIC a device on rails.
Topology as_graph() {
  return fabric_topology({.nodes = 4,
                          .devices_per_node = 4,
                          .port_bytes_per_second = 100e9,
                          .nics_per_node = 4,
                          .nic_bytes_per_second = 10e9,
                          .port_latency = Seconds{1e-6},
                          .nic_latency = Seconds{10e-6}});
}

SimTime makespan(const Plan& plan, const NetworkOptions& network) {
  return evaluate(plan, {}, network).simulation.makespan;
}

}  // namespace

TEST_CASE("a link of the table has the fastest replica's rate and the longest one's latency") {
  const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 2}));
  const CostTable costs = with_topology_links({.stages = std::vector<StageCosts>(2)}, chain(5e9), kGrid, schedule);
  const LinkCost& link = costs.links.at({0, 1});
  CHECK(link.bytes_per_second == 10e9);
  CHECK(link.latency.count() == doctest::Approx(5e-6));
}

TEST_CASE("a rank without a device, and two that nothing connects, are refused") {
  const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 2}));
  Topology cut = chain();
  cut.links.resize(2);
  CHECK(refusal([&] { with_topology_links({}, cut, kGrid, schedule); }) ==
        "no links lead from device 0 (0) to device 2 (2), which exchange data: connect them");
  Topology small = chain();
  small.devices.pop_back();
  CHECK(refusal([&] { with_topology_links({}, small, kGrid, schedule); }) ==
        "the layout has 4 ranks, but the topology 3 devices: rank 3 hangs nowhere; name more devices");
}

TEST_CASE("a cluster's fabric given as a graph predicts what the cluster does, to the picosecond") {
  for (const Layout& layout : {kNodeWide, Layout{.data = 4, .tensor = 1, .pipeline = 4, .zero = 1}}) {
    const Plan plan = round_plan(layout);
    CHECK(makespan(plan, {.topology = as_graph()}) == makespan(plan, {}));
  }
}

TEST_CASE("less bandwidth on one link of a topology makes the step longer") {
  const Plan plan = round_plan(kNodeWide);
  Topology slow = as_graph();
  for (TopologyLink& link : slow.links) {
    if (link.name.starts_with("nic_up:node1")) link.bytes_per_second /= 4;
  }
  CHECK(makespan(plan, {.topology = slow}) > makespan(plan, {}));
  CHECK(refusal([&] {
          makespan(plan, {.degraded = {parse_degraded_links("nic:node1=0.5")}, .topology = as_graph()});
        }).starts_with("ports and NICs are those of the cluster's own fabric"));
}

TEST_CASE("devices that share a NIC share its rate") {
  Plan plan = round_plan(kNodeWide);
  const SimTime one_each = makespan(plan, {});
  plan.cluster.wiring.nics_per_node = 4;
  CHECK(makespan(plan, {}) == one_each);
  plan.cluster.wiring.nics_per_node = 2;
  const SimTime two_on_one = makespan(plan, {});
  CHECK(two_on_one > one_each);
  plan.cluster.wiring.nics_per_node = 1;
  const SimTime all_on_one = makespan(plan, {});
  CHECK(all_on_one > two_on_one);
  // A NIC that all of a node share is degraded once, not once for each device.
  const SimTime degraded = makespan(plan, {.degraded = {parse_degraded_links("nic:node1=0.5")}});
  plan.cluster.network->bytes_per_second /= 2;
  CHECK(degraded > all_on_one);
  CHECK(degraded <= makespan(plan, {}));
}

TEST_CASE("one NIC for a node holds up only what is sent at once") {
  const auto of = [](const Layout& layout, int nics) {
    Plan plan = round_plan(layout);
    plan.cluster.wiring.nics_per_node = nics;
    return makespan(plan, {});
  };
  const Layout one_crosses{.data = 1, .tensor = 1, .pipeline = 16, .zero = 0};
  CHECK(of(one_crosses, 1) == of(one_crosses, 4));
  const Layout four_cross{.data = 4, .tensor = 1, .pipeline = 4, .zero = 0};
  CHECK(of(four_cross, 1) > of(four_cross, 4));
}

}  // namespace plumb::test
