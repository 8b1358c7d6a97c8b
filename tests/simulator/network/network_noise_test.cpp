#include "simulator/network/network_noise.h"

#include <doctest/doctest.h>

#include "simulator/network/placement/place_inner.h"
#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

/// Makes the event engine answer although nothing is shared: with a slowdown that no double can tell.
NetworkSpec nothing_shared(const Schedule& schedule, const CostTable& costs, int replicas) {
  NetworkSpec network{.replicas = replicas, .collective_slowdown = 1e-300};
  std::vector<int> all;
  for (int k = 0; k < replicas; ++k) all.push_back(k);
  for (int stage = 0; stage < stage_count(schedule); ++stage) {
    for (const Op op : {Op::kUnshard, Op::kReduceGrad})
      network.collectives.push_back({.op = op, .stage = stage, .replicas = all});
  }
  CHECK(shared_network(network, schedule, costs).plain == false);
  return network;
}

}  // namespace

TEST_CASE("where nothing is shared both engines have the same runs, draw by draw") {
  for (const char* name : {"1f1b", "interleaved", "zb-h1", "dualpipev", "chimera", "bpipe"}) {
    for (const int replicas : {1, 3}) {
      CAPTURE(name);
      CAPTURE(replicas);
      const Schedule schedule = lower(
          make_schedule(name, {.ranks = 4, .microbatches = 8, .chunks = std::string(name) == "interleaved" ? 2 : 1}),
          {.data = {.enabled = true, .zero = 1}});
      CostTable costs = random_costs(schedule, 3);
      price_collectives(costs, 1000, Seconds{700e-12});
      const NoiseSpec noise{.cv = 0.2, .rank_cv = 0.1, .communication_cv = 0.3, .runs = 5, .replicas = replicas};
      const NoisySteps compiled = simulate_noise(schedule, costs, noise, Sends::kBuffered, 1);
      const NoisySteps events =
          simulate_noise(schedule, costs, nothing_shared(schedule, costs, replicas), noise, Sends::kBuffered, 2);
      CHECK(events.quiet_makespan == compiled.quiet_makespan);
      CHECK(events.makespans == compiled.makespans);
      CHECK(events.quiet_idle == compiled.quiet_idle);
      CHECK(events.mean_idle == compiled.mean_idle);
    }
  }
}

TEST_CASE("where transfers share a link the quiet step is the simulation's, and runs do not depend on threads") {
  const Schedule schedule = lowered("1f1b", 4, 8);
  CostTable costs = whole_costs(4, 1e-3, 2e-3);
  costs.default_link.bytes_per_second = 1e9;
  for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 1'500'000;
  const NetworkSpec trunk = one_trunk(schedule, 1e9);
  const NoiseSpec noise{.cv = 0.1, .communication_cv = 0.1, .runs = 40};
  const NoisySteps one = simulate_noise(schedule, costs, trunk, noise, Sends::kBuffered, 1);
  const NoisySteps three = simulate_noise(schedule, costs, trunk, noise, Sends::kBuffered, 3);
  CHECK(one.quiet_makespan == simulate(schedule, costs, trunk).makespan);
  CHECK(one.makespans == three.makespans);
  CHECK(one.mean_idle == three.mean_idle);
  CHECK(slowdown_ratio(one) > 1);
  NoiseSpec other = noise;
  other.seed = 2;
  CHECK(simulate_noise(schedule, costs, trunk, other).makespans != one.makespans);
  // Noise of computing alone leaves the bytes as they are; without any, every run is the quiet one.
  const NoisySteps quiet = simulate_noise(schedule, costs, trunk, {.runs = 3});
  for (const SimTime makespan : quiet.makespans) CHECK(makespan == quiet.quiet_makespan);
}

TEST_CASE("ranks of a tensor group draw as one, and fold") {
  const Schedule schedule =
      lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = 0}});
  CostTable costs = whole_costs(2, 1e-3, 2e-3);
  costs.default_link.bytes_per_second = 1e9;
  for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 1'000'000;
  price_collectives(costs, 10'000'000, Seconds{0.01});
  const Fabric fabric = fabric_of(FabricSpec{.nodes = 4,
                                             .devices_per_node = 2,
                                             .port_bytes_per_second = 5e9,
                                             .nics_per_node = 1,
                                             .nic_bytes_per_second = 1e9});
  const NetworkSpec network = place(fabric, 2, {.tensor = 2, .context = 2, .pipeline = 2}, schedule, costs);
  CHECK(shared_network(network, schedule, costs, Replicas::kFolded, {0, 0, 1, 1}).first_replica.size() == 2);
  const NoisySteps noisy = simulate_noise(schedule, costs, network, {.cv = 0.1, .runs = 10, .replicas = 2});
  CHECK(noisy.quiet_makespan == simulate(schedule, costs, network).makespan);
  CHECK(noisy.quiet_idle.size() == 2);
  CHECK_THROWS_AS(simulate_noise(schedule, costs, network, {.cv = 0.1, .replicas = 3}), SpecError);
}

}  // namespace plumb::test
