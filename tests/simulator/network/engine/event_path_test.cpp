#include "simulator/network/engine/event_path.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "simulator/network/simulate_network.h"
#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

/// Each step must start within the one before it, and all that they add must sum up to the makespan.
void check_path(const Simulation& simulation) {
  const std::vector<CriticalStep>& path = simulation.critical_path;
  REQUIRE(!path.empty());
  REQUIRE(path.front().start == SimTime{0});
  REQUIRE(path.back().end == simulation.makespan);
  for (std::size_t i = 1; i < path.size(); ++i) {
    REQUIRE(path[i].start >= path[i - 1].start);
    REQUIRE(path[i].start <= path[i - 1].end);
  }
  const std::vector<SimTime> added = contributions(path);
  REQUIRE(std::accumulate(added.begin(), added.end(), SimTime{0}) == simulation.makespan);
}

/// Returns the time that the path spends computing on one rank of one replica.
SimTime computing_on(const Simulation& simulation, int replica, int rank) {
  SimTime time{0};
  const std::vector<SimTime> added = contributions(simulation.critical_path);
  for (std::size_t i = 0; i < added.size(); ++i) {
    const CriticalStep& step = simulation.critical_path[i];
    if (step.replica == replica && step.rank == rank && is_compute(step.action.op)) time += added[i];
  }
  return time;
}

/// Returns replicas that meet in every collective of their stages, by themselves or inside actions, and share no link.
NetworkSpec meeting_replicas(const Schedule& schedule, int replicas, bool inside) {
  NetworkSpec network{.replicas = replicas};
  std::vector<int> all(static_cast<std::size_t>(replicas));
  std::iota(all.begin(), all.end(), 0);
  for (int stage = 0; stage < stage_count(schedule); ++stage) {
    for (const Op op : {Op::kUnshard, Op::kReduceGrad})
      network.collectives.push_back({.op = op, .stage = stage, .replicas = all});
    if (!inside) continue;
    network.inner.push_back(
        {.group = Group::kExpert, .kind = CollectiveKind::kAllToAll, .stage = stage, .replicas = all});
  }
  return network;
}

}  // namespace

TEST_SUITE("event_path") {
  TEST_CASE("a gradient sum that waits for another replica leads onto that replica") {
    // Replica 1 computes at half speed: F 2 s, B 4 s; the sum of 1 s starts at 6 s for both.
    const Schedule schedule =
        lower(make_schedule("gpipe", {.ranks = 1, .microbatches = 1}), {.data = {.enabled = true}});
    CostTable costs = whole_costs(1, 1, 2);
    price_collectives(costs, 1000, Seconds{1});
    NetworkSpec network = meeting_replicas(schedule, 2, false);
    network.speeds = {1, 0.5};
    const Simulation simulation = simulate(schedule, costs, network);
    check_path(simulation);
    CHECK(computing_on(simulation, 1, 0) == 6 * kSecond);
    CHECK(computing_on(simulation, 0, 0) == SimTime{0});
  }

  TEST_CASE("an exchange inside an action leads onto the replica that came last to it, and back") {
    // F and B are 1 s and 2 s of computing and 1 s of exchange each. Replica 1, at half speed, comes to the exchanges
    // at 2 s and at 3 + 4 = 7 s; replica 0 ends with it at 8 s, and is the first that does.
    const Schedule schedule = lowered("gpipe", 1, 1);
    CostTable costs = whole_costs(1, 1, 2);
    for (const Op op : {Op::kForward, Op::kBackward}) {
      costs.stages[0].segments[static_cast<std::size_t>(op)].front().push_back({.kind = Segment::Kind::kCollective,
                                                                                .seconds = Seconds{1},
                                                                                .group = Group::kExpert,
                                                                                .collective = CollectiveKind::kAllToAll,
                                                                                .bytes = 1000});
    }
    NetworkSpec network = meeting_replicas(schedule, 2, true);
    network.speeds = {1, 0.5};
    const Simulation simulation = simulate(schedule, costs, network);
    CHECK(simulation.makespan == 8 * kSecond);
    check_path(simulation);
    const std::vector<CriticalStep>& path = simulation.critical_path;
    REQUIRE(path.size() == 3);
    CHECK(path[0].replica == 1);
    CHECK(path[1].replica == 1);
    CHECK(path[2].replica == 0);
    CHECK(path[2].start == 7 * kSecond);
    CHECK(path[2].action.op == Op::kBackward);
    CHECK(computing_on(simulation, 1, 0) == 7 * kSecond);
  }
}

TEST_SUITE("property") {
  TEST_CASE("the critical path adds up to the makespan in every engine, folded or not, and names a very slow rank") {
    for (const int zero : {0, 1, 3}) {
      for (const Schedule& schedule : all_lowered(4, 6, 1, {.data = {.enabled = true, .zero = zero}})) {
        for (const bool inside : {false, true}) {
          CostTable costs = random_costs(schedule, 11);
          costs.default_link = {.latency = Seconds{70e-12}, .bytes_per_second = 2e12};
          price_collectives(costs, 1000, Seconds{500e-12});
          if (inside) add_inner_collectives(costs, 5);
          check_path(simulate(schedule, costs));
          if (!inside) check_path(simulate(schedule, costs, {.burst_bytes = 200}));
          check_path(simulate(schedule, costs, private_links(schedule, costs), {}, Replicas::kUnfolded));
          for (const int slow_rank : {0, 2}) {
            for (const double speed : {0.8, 0.001}) {
              NetworkSpec network = meeting_replicas(schedule, 3, inside);
              network.speeds.assign(3 * schedule.ranks.size(), 1.0);
              network.speeds[schedule.ranks.size() + static_cast<std::size_t>(slow_rank)] = speed;
              for (const Replicas replicas : {Replicas::kFolded, Replicas::kUnfolded}) {
                const Simulation simulation = simulate(schedule, costs, network, {}, replicas);
                REQUIRE(simulation.engine == "events");
                check_path(simulation);
                if (speed < 0.01) REQUIRE(2 * computing_on(simulation, 1, slow_rank) > simulation.makespan);
              }
            }
          }
        }
      }
    }
  }

  TEST_CASE("the critical path of messages on one trunk adds up to the makespan") {
    for (const Schedule& schedule : all_lowered(4, 6, 1)) {
      CostTable costs = random_costs(schedule, 3);
      costs.links.clear();
      costs.default_link = {.latency = Seconds{50e-12}, .bytes_per_second = 1e12};
      NetworkSpec network = one_trunk(schedule, 0.7e12);
      network.speeds.assign(schedule.ranks.size(), 1.0);
      network.speeds.back() = 0.6;
      check_path(simulate(schedule, costs, network));
    }
  }
}

}  // namespace plumb::test
