#include "simulator/network/fold.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

/// Two replicas of two stages; each sends over a link of its own and over one that both share.
NetworkSpec two_replicas() {
  return {.links = {{"own 0", 10}, {"own 1", 10}, {"both", 15}},
          .routes = {{.uses = {{0, 1}, {2, 1}}}, {.uses = {{1, 1}, {2, 1}}}},
          .replicas = 2,
          .activation_route = {0, kNoRoute, 1, kNoRoute}};
}

}  // namespace

TEST_SUITE("fold") {
  TEST_CASE("links of one kind become one, and the shared one carries the load of all replicas") {
    const Fold fold = folded(two_replicas(), 2);
    CHECK(fold.network.replicas == 1);
    CHECK(fold.first_replica == std::vector<int>{0});
    CHECK(fold.network.links == std::vector<NetworkLink>{{"own 0", 10}, {"both", 15}});
    CHECK(fold.network.routes == std::vector<Route>{{.uses = {{0, 1}, {1, 2}}}});
    CHECK(fold.network.activation_route == std::vector<std::int32_t>{0, kNoRoute});
  }

  TEST_CASE("one replica is what it is") {
    NetworkSpec network = two_replicas();
    network.replicas = 1;
    network.activation_route.resize(2);
    CHECK(folded(network, 2).network.routes == network.routes);
  }

  TEST_CASE("replicas on unequal links, at unequal speeds or with other company stand for themselves") {
    const auto classes = [](const NetworkSpec& network) { return folded(network, 2).network.replicas; };
    NetworkSpec network = two_replicas();
    network.links[1].bytes_per_second = 9;
    CHECK(classes(network) == 2);

    network = two_replicas();
    network.speeds = {1, 1, 1, 0.5};
    CHECK(classes(network) == 2);
    network.speeds = {1, 0.5, 1, 0.5};
    CHECK(folded(network, 2).network.speeds == std::vector<double>{1, 0.5});

    network = two_replicas();
    network.routes[1].weight = 2;
    CHECK(classes(network) == 2);

    network = two_replicas();
    network.gradient_route = {kNoRoute, 0, kNoRoute, kNoRoute};
    CHECK(classes(network) == 2);

    network = two_replicas();
    network.collectives = {{.stage = 0, .replicas = {0}}};  // replica 1 reduces with nobody
    CHECK(classes(network) == 2);
    network.collectives.clear();
    network.inner = {{.stage = 0, .replicas = {0}}};
    CHECK(classes(network) == 2);
  }

  TEST_CASE("a collective of all replicas becomes one of the one that stands for them") {
    NetworkSpec network = two_replicas();
    network.routes.push_back({.uses = {{0, 1}, {1, 1}}, .weight = 2});
    network.collectives = {{.stage = 0, .replicas = {0, 1}, .route = 2, .volume_ratio = 1}};
    network.inner = {{.stage = 1, .replicas = {0, 1}, .route = 2}};
    const Fold fold = folded(network, 2);
    CHECK(fold.network.collectives == std::vector<CollectiveFlow>{{.stage = 0, .replicas = {0}, .route = 1}});
    CHECK(fold.network.inner == std::vector<InnerCollective>{{.stage = 1, .replicas = {0}, .route = 2}});
    // Both links of its own kind have the same load of both classes; the collective crosses that kind with share 1.
    CHECK(fold.network.routes[1] == Route{.uses = {{0, 1}}, .weight = 2});
  }

  TEST_CASE("of four replicas with one slow the three others are one class, and collectives join both") {
    NetworkSpec network{.links = {{"own 0", 10}, {"own 1", 10}, {"own 2", 10}, {"own 3", 10}, {"all", 15}},
                        .replicas = 4,
                        .collectives = {{.stage = 0, .replicas = {0, 1, 2, 3}}},
                        .speeds = {1, 0.5, 1, 1}};
    for (int k = 0; k < 4; ++k) {
      network.routes.push_back({.uses = {{k, 1}, {4, 1}}});
      network.activation_route.push_back(k);
    }
    const Fold fold = folded(network, 1);
    CHECK(fold.network.replicas == 2);
    CHECK(fold.first_replica == std::vector<int>{0, 1});
    CHECK(fold.network.speeds == std::vector<double>{1, 0.5});
    CHECK(fold.network.links == std::vector<NetworkLink>{{"own 0", 10}, {"own 1", 10}, {"all", 15}});
    CHECK(fold.network.routes == std::vector<Route>{{.uses = {{0, 1}, {2, 3}}}, {.uses = {{1, 1}, {2, 1}}}});
    CHECK(fold.network.collectives == std::vector<CollectiveFlow>{{.stage = 0, .replicas = {0, 1}}});
  }
}

}  // namespace plumb::test
