#include "simulator/network/limiting_links.h"

#include <doctest/doctest.h>

#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

CostTable byte_costs(const Schedule& schedule) {
  CostTable costs = whole_costs(stage_count(schedule), 1, 2);
  costs.default_link.bytes_per_second = 1e9;
  for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 1000;
  return costs;
}

}  // namespace

TEST_SUITE("limiting_links") {
  TEST_CASE("a link limits where all its channels together ask more than it has") {
    const Schedule schedule = lowered("1f1b", 2, 4);
    const CostTable costs = byte_costs(schedule);
    // There is one channel each way, of 1e9 B/s.
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

  TEST_CASE(
      "of collectives inside a rank's actions the fastest counts where one replica takes part in all, else their sum") {
    const Schedule schedule = lowered("1f1b", 1, 2);
    CostTable costs = whole_costs(1, 1, 2);
    const auto add = [&](Op op, Group group, std::int64_t bytes) {
      costs.stages[0].segments[static_cast<std::size_t>(op)].front().push_back(
          {.kind = Segment::Kind::kCollective, .seconds = Seconds{1}, .group = group, .bytes = bytes});
    };
    add(Op::kForward, Group::kTensor, 100);
    add(Op::kBackward, Group::kTensor, 60);
    add(Op::kBackward, Group::kExpert, 80);
    NetworkSpec network{.links = {{"port", 100}}, .routes = {{.uses = {{0, 1}}}}, .replicas = 2};
    network.inner = {{.group = Group::kTensor, .stage = 0, .replicas = {0}, .route = 0},
                     {.group = Group::kExpert, .stage = 0, .replicas = {0, 1}, .route = 0}};
    CHECK(with_limiting_links(network, schedule, costs).links.empty());
    network.links[0].bytes_per_second = 99;
    CHECK(with_limiting_links(network, schedule, costs).links.size() == 1);
    network.inner[0].replicas = {0};
    network.inner[1].replicas = {1};
    network.links[0].bytes_per_second = 179;
    CHECK(with_limiting_links(network, schedule, costs).inner[1].route == 0);
    network.links[0].bytes_per_second = 180;
    CHECK(!has_routes(with_limiting_links(network, schedule, costs)));
  }
}

}  // namespace plumb::test
