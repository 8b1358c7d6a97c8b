#include "simulator/network/network_spec.h"

#include <doctest/doctest.h>

#include "tests/simulator/network/networks.h"

using namespace plumb;

namespace {

CostTable byte_costs(const Schedule& schedule) {
  CostTable costs = whole_costs(stage_count(schedule), 1, 2);
  costs.default_link.bytes_per_second = 1e9;
  for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 1000;
  return costs;
}

}  // namespace

TEST_SUITE("network_spec") {
  TEST_CASE("a link limits where all its channels together ask more than it has") {
    const Schedule schedule = lowered("1f1b", 2, 4);
    const CostTable costs = byte_costs(schedule);
    // One channel there, one back, 1e9 B/s each.
    CHECK(with_limiting_links(one_trunk(schedule, 2e9), schedule, costs).links.empty());
    CHECK(!has_routes(with_limiting_links(one_trunk(schedule, 2e9), schedule, costs)));
    CHECK(with_limiting_links(one_trunk(schedule, 1.9e9), schedule, costs).links.size() == 1);
    CHECK(has_routes(with_limiting_links(one_trunk(schedule, 1.9e9), schedule, costs)));
  }

  TEST_CASE("messages without bytes ask nothing") {
    const Schedule schedule = lowered("1f1b", 2, 4);
    CHECK(!has_routes(with_limiting_links(one_trunk(schedule, 1), schedule, whole_costs(2, 1, 2))));
  }

  TEST_CASE("a message over a shared link needs a rate of its own") {
    const Schedule schedule = lowered("1f1b", 2, 4);
    CostTable costs = byte_costs(schedule);
    costs.default_link = {};
    CHECK_THROWS_WITH_AS(
        with_limiting_links(one_trunk(schedule, 1e9), schedule, costs),
        "the network of the simulation: SEND_F has a route, but the cost table gives its link no bandwidth: give one",
        SpecError);
  }

  TEST_CASE("routes keep the links that limit and lose the others") {
    const Schedule schedule = lowered("1f1b", 2, 4);
    NetworkSpec network = one_trunk(schedule, 1e9);
    network.links.insert(network.links.begin(), {"wide", 1e12});
    network.routes = {{.uses = {{0, 1}, {1, 0.75}}, .weight = 3}};
    const NetworkSpec limiting = with_limiting_links(network, schedule, byte_costs(schedule));
    CHECK(limiting.links == std::vector<NetworkLink>{{"trunk", 1e9}});
    CHECK(limiting.routes == std::vector<Route>{{.uses = {{0, 0.75}}, .weight = 3}});
    CHECK(limiting.activation_route == network.activation_route);
  }

  TEST_CASE("a collective's rate alone is its volume over its price") {
    CostTable costs = whole_costs(1, 1, 2);
    price_collectives(costs, 1'000'000, Seconds{0.5});
    const CollectiveFlow flow{.volume_ratio = 1.5};
    CHECK(collective_rate(flow, costs, {.op = Op::kReduceGrad}) == 3e6);
    CHECK(collective_rate(flow, whole_costs(1, 1, 2), {.op = Op::kReduceGrad}) == 0);
  }

  TEST_CASE("what names things that are not there is refused") {
    const Schedule schedule = lowered("1f1b", 2, 4);
    const NetworkSpec right = one_trunk(schedule, 1e9);
    check_network(right, schedule);
    const auto refused = [&](auto change) {
      NetworkSpec wrong = right;
      change(wrong);
      CHECK_THROWS_AS(check_network(wrong, schedule), SpecError);
    };
    refused([](NetworkSpec& n) { n.replicas = 0; });
    refused([](NetworkSpec& n) { n.routes[0].uses[0].link = 1; });
    refused([](NetworkSpec& n) { n.routes[0].uses[0].share = 0; });
    refused([](NetworkSpec& n) { n.routes[0].weight = -1; });
    refused([](NetworkSpec& n) { n.activation_route[0] = 1; });
    refused([](NetworkSpec& n) { n.links[0].bytes_per_second = 0; });
    refused([](NetworkSpec& n) { n.collectives = {{.stage = 2, .replicas = {0}}}; });
    refused([](NetworkSpec& n) { n.collectives = {{.replicas = {}}}; });
    refused([](NetworkSpec& n) { n.collectives = {{.replicas = {1}}}; });
    refused([](NetworkSpec& n) { n.collectives = {{.op = Op::kForward, .replicas = {0}}}; });
    refused([](NetworkSpec& n) { n.speeds = {1}; });
    refused([](NetworkSpec& n) { n.collective_slowdown = -0.1; });
  }
}
