#include "simulator/network/topology/network_spec.h"

#include <doctest/doctest.h>

#include "tests/simulator/network/networks.h"

namespace plumb::test {

TEST_SUITE("network_spec") {
  TEST_CASE("a collective's rate alone is its volume over its price") {
    CostTable costs = whole_costs(1, 1, 2);
    price_collectives(costs, 1'000'000, Seconds{0.5});
    const CollectiveFlow flow{.volume_ratio = 1.5};
    CHECK(collective_rate(flow, costs, {.op = Op::kReduceGrad}) == 3e6);
    CHECK(collective_rate(flow, whole_costs(1, 1, 2), {.op = Op::kReduceGrad}) == 0);
    CHECK(inner_rate({.volume_ratio = 1.5}, 2e6) == 3e6);
    CHECK(inner_rate({.volume_ratio = 1.5, .most_bytes_per_second = 2e6}, 2e6) == 2e6);
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
    refused([](NetworkSpec& n) { n.inner = {{.stage = 2, .replicas = {0}}}; });
    refused([](NetworkSpec& n) { n.inner = {{.stage = 0, .replicas = {1}}}; });
    refused([](NetworkSpec& n) { n.inner = {{.stage = 0, .replicas = {0}, .route = 7}}; });
    refused([](NetworkSpec& n) { n.inner = {{.stage = 0, .replicas = {0}, .most_bytes_per_second = 0}}; });
    refused([](NetworkSpec& n) { n.speeds = {1}; });
    refused([](NetworkSpec& n) { n.collective_slowdown = -0.1; });
  }
}

}  // namespace plumb::test
