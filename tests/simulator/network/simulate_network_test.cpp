#include "simulator/network/simulate_network.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "simulator/network/placement/place_inner.h"
#include "simulator/network/topology/fabric.h"
#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

double makespan_s(const Simulation& simulation) {
  return to_seconds(simulation.makespan).count();
}

CostTable message_costs(const Schedule& schedule, double forward, double backward, double latency,
                        double bytes_per_second, std::int64_t bytes) {
  CostTable costs = whole_costs(stage_count(schedule), forward, backward);
  costs.default_link = {.latency = Seconds{latency}, .bytes_per_second = bytes_per_second};
  for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = bytes;
  return costs;
}

/// Devices 0 to n-1 form a ring, with a link each way.
Topology ring_of(int devices, double bytes_per_second) {
  Topology ring;
  for (int d = 0; d < devices; ++d) {
    ring.vertices.push_back(std::to_string(d));
    ring.devices.push_back(d);
    ring.links.push_back({"on", d, (d + 1) % devices, bytes_per_second});
    ring.links.push_back({"back", (d + 1) % devices, d, bytes_per_second});
  }
  return ring;
}

}  // namespace

TEST_SUITE("simulate_network") {
  TEST_CASE("where links cannot fill the compiled engine answers, and says so") {
    const Schedule schedule = lowered("1f1b", 4, 8);
    const CostTable costs = message_costs(schedule, 1, 2, 0, 1e9, 1'000'000);
    const Fabric ring = fabric_of(ring_of(4, 1e9));
    const Simulation simulation = simulate(schedule, costs, place(ring, 1, {.pipeline = 4}, schedule, costs));
    CHECK(simulation.engine == "compiled");
    CHECK(simulation.makespan == simulate(schedule, costs).makespan);
    CHECK(simulate(schedule, costs, one_trunk(schedule, 1e9)).engine == "events");
    CHECK(simulate(schedule, costs, one_trunk(schedule, 6e9)).engine == "compiled");  // six channels
  }

  TEST_CASE("a message that crosses a link of half its rate takes twice its time") {
    const Schedule schedule = lowered("gpipe", 2, 1);
    const CostTable costs = message_costs(schedule, 1, 1, 0, 1e9, 1'000'000'000);
    const Simulation simulation = simulate(schedule, costs, one_trunk(schedule, 0.5e9));
    CHECK(simulation.added == 2 * kSecond);
    CHECK(simulation.makespan == 8 * kSecond);
  }

  TEST_CASE("the critical path of a shared run leads from 0 to the makespan without gaps") {
    for (const Schedule& schedule : all_lowered(4, 8, 1)) {
      const CostTable costs = message_costs(schedule, 1e-9, 2e-9, 0, 1e12, 2000);
      const Simulation simulation = simulate(schedule, costs, one_trunk(schedule, 1e12));
      REQUIRE(simulation.engine == "events");
      REQUIRE(!simulation.critical_path.empty());
      CHECK(simulation.critical_path.front().start == SimTime{0});
      CHECK(simulation.critical_path.back().end == simulation.makespan);
      for (std::size_t i = 1; i < simulation.critical_path.size(); ++i) {
        CHECK(simulation.critical_path[i].start == simulation.critical_path[i - 1].end);
      }
      CHECK(simulation.added >= SimTime{0});
    }
  }

  TEST_CASE("replicas with equal traffic on shared NICs take the same times folded into one and one by one") {
    // A node a replica, so that messages and gradient rings meet at every NIC.
    for (const int replicas : {1, 2, 7}) {
      for (const int zero : {0, 1, 3}) {
        for (const NodeHub hub : {NodeHub::kNvSwitch, NodeHub::kPcie}) {
          const Schedule schedule =
              lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 6}), {.data = {.enabled = true, .zero = zero}});
          CostTable costs = message_costs(schedule, 1e-3, 2e-3, 1e-6, 25e9, 40'000'000);
          price_collectives(costs, 1'000'000'000, Seconds{0.05});
          const Fabric fabric = fabric_of(FabricSpec{.nodes = 4 * replicas,
                                                     .hub = hub,
                                                     .port_bytes_per_second = 50e9,
                                                     .nic_bytes_per_second = 25e9,
                                                     .nodes_per_leaf = 2,
                                                     .oversubscription = replicas == 7 ? 1.0 : 2.0});
          const NetworkSpec network = place(fabric, 1, {.context = replicas, .pipeline = 4}, schedule, costs);
          const Simulation folded = simulate(schedule, costs, network);
          const Simulation unfolded = simulate(schedule, costs, network, {}, Replicas::kUnfolded);
          CHECK(folded.makespan == unfolded.makespan);
          CHECK(folded.busy == unfolded.busy);
          CHECK(folded.last_end == unfolded.last_end);
          CHECK(unfolded.replicas == replicas);
          if (replicas > 1) CHECK(folded.added > SimTime{0});
        }
      }
    }
  }

  TEST_CASE("tensor-parallel replicas behind one NIC fold into one with the load of all") {
    const Schedule schedule = lowered("gpipe", 2, 1);
    const CostTable costs = message_costs(schedule, 1, 1, 0, 1e9, 1'000'000'000);
    // Four devices of a node send at once through one NIC of 2 GB/s: half a GB/s each.
    const Fabric fabric = fabric_of(FabricSpec{.nodes = 2,
                                               .devices_per_node = 4,
                                               .port_bytes_per_second = 100e9,
                                               .nics_per_node = 1,
                                               .nic_bytes_per_second = 2e9});
    const NetworkSpec network = place(fabric, 4, {.tensor = 4, .pipeline = 2}, schedule, costs);
    const Simulation folded = simulate(schedule, costs, network);
    CHECK(folded.replicas == 1);
    CHECK(folded.makespan == 4 * kSecond + 4 * kSecond);
    CHECK(simulate(schedule, costs, network, {}, Replicas::kUnfolded).makespan == folded.makespan);
  }

  TEST_CASE("with tensor, context and expert traffic folded replicas take the times of all, one by one") {
    // A node has two replicas of tp = 2; context groups and expert groups reach over nodes, and all cross the NICs.
    for (const int data : {1, 2, 7}) {
      const Schedule schedule =
          lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = 0}});
      CostTable costs = message_costs(schedule, 1e-3, 2e-3, 1e-6, 25e9, 40'000'000);
      price_collectives(costs, 100'000'000, Seconds{0.01});
      for (StageCosts& stage : costs.stages) {
        for (const Op op : {Op::kForward, Op::kBackward}) {
          auto& segments = stage.segments[static_cast<std::size_t>(op)].front();
          const auto add = [&](Group group, CollectiveKind kind, std::int64_t bytes, bool beside) {
            segments.push_back({.kind = Segment::Kind::kCollective,
                                .seconds = Seconds{static_cast<double>(bytes) / 25e9},
                                .beside = beside,
                                .group = group,
                                .collective = kind,
                                .bytes = bytes});
          };
          add(Group::kTensor, CollectiveKind::kAllReduce, 10'000'000, false);
          add(Group::kExpert, CollectiveKind::kAllToAll, 20'000'000, false);
          if (data != 2) add(Group::kContext, CollectiveKind::kAllGather, 15'000'000, true);
        }
      }
      const ProcessGrid grid{.tensor = 2, .context = 2, .data = data, .pipeline = 2};
      const ProcessGrid replicas{.tensor = 2, .context = 2 * data, .pipeline = 2};
      const ProcessGrid experts{.tensor = 2, .context = data == 2 ? 4 : 2, .data = data == 2 ? 1 : data, .pipeline = 2};
      const Fabric fabric = fabric_of(FabricSpec{.nodes = 2 * data,
                                                 .devices_per_node = 4,
                                                 .hub = data == 7 ? NodeHub::kPcie : NodeHub::kNvSwitch,
                                                 .port_bytes_per_second = 30e9,
                                                 .nics_per_node = 2,
                                                 .nic_bytes_per_second = 25e9,
                                                 .nodes_per_leaf = 2,
                                                 .oversubscription = 2});
      NetworkSpec network = with_inner_collectives(place(fabric, 4, replicas, schedule, costs), fabric, 4,
                                                   {.ranks = grid, .experts = experts}, schedule, costs);
      const Simulation folded = simulate(schedule, costs, network);
      const Simulation unfolded = simulate(schedule, costs, network, {}, Replicas::kUnfolded);
      CHECK(folded.engine == "events");
      CHECK(folded.replicas < unfolded.replicas);
      CHECK(folded.makespan == unfolded.makespan);
      CHECK(folded.busy == unfolded.busy);
      // Collectives that cross shared NICs take longer than their price; one replica's groups have their node to
      // themselves.
      NetworkSpec without = network;
      without.inner.clear();
      if (data > 1) CHECK(simulate(schedule, costs, without).makespan < folded.makespan);

      network.speeds.assign(static_cast<std::size_t>(network.replicas) * 2, 1.0);
      network.speeds[1] = 0.5;
      const Simulation slow = simulate(schedule, costs, network);
      const Simulation all_slow = simulate(schedule, costs, network, {}, Replicas::kUnfolded);
      CHECK(slow.makespan == all_slow.makespan);
      CHECK(slow.replica == all_slow.replica);
    }
  }

  TEST_CASE(
      "a tensor group that has its ports to itself leaves the compiled engine in charge, with one beside it not") {
    const Schedule schedule = lowered("1f1b", 2, 4);
    CostTable costs = message_costs(schedule, 1e-3, 2e-3, 1e-6, 25e9, 40'000'000);
    const Segment ring{.kind = Segment::Kind::kCollective,
                       .seconds = Seconds{1e-3},
                       .bytes = 100'000'000};  // 2(4-1)/4 of them in 1 ms are 150 GB/s, as much as a port has
    for (StageCosts& stage : costs.stages) {
      for (const Op op : {Op::kForward, Op::kBackward})
        stage.segments[static_cast<std::size_t>(op)].front().push_back(ring);
    }
    const Fabric fabric = fabric_of(FabricSpec{.nodes = 2,
                                               .devices_per_node = 4,
                                               .port_bytes_per_second = 150e9,
                                               .nics_per_node = 4,
                                               .nic_bytes_per_second = 25e9});
    const ProcessGrid grid{.tensor = 4, .pipeline = 2};
    const auto engine = [&] {
      return simulate(schedule, costs,
                      with_inner_collectives(place(fabric, 4, grid, schedule, costs), fabric, 4,
                                             {.ranks = grid, .experts = {.data = 4, .pipeline = 2}}, schedule, costs))
          .engine;
    };
    CHECK(engine() == "compiled");
    Segment beside = ring;
    beside.beside = true;
    costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)].front().push_back(beside);
    CHECK(engine() == "events");
  }

  TEST_CASE("replicas that are not alike are simulated one by one, those that are as one") {
    const Schedule schedule =
        lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = 0}});
    CostTable costs = message_costs(schedule, 1e-3, 2e-3, 0, 25e9, 40'000'000);
    price_collectives(costs, 1'000'000'000, Seconds{0.05});
    const Fabric fabric =
        fabric_of(FabricSpec{.nodes = 6, .port_bytes_per_second = 50e9, .nic_bytes_per_second = 25e9});
    NetworkSpec network = place(fabric, 1, {.data = 3, .pipeline = 2}, schedule, costs);
    const Simulation alike = simulate(schedule, costs, network);
    CHECK(alike.replicas == 1);
    network.speeds = {1, 1, 1, 0.5, 1, 1};
    const Simulation slow = simulate(schedule, costs, network);
    CHECK(slow.replicas >= 2);
    CHECK(slow.makespan > alike.makespan);
    CHECK(slow.makespan == simulate(schedule, costs, network, {}, Replicas::kUnfolded).makespan);
    network.speeds.clear();
    for (NetworkLink& link : network.links) {
      if (link.name == "nic_up:node1.0") link.bytes_per_second /= 4;
    }
    const Simulation degraded = simulate(schedule, costs, network);
    CHECK(degraded.replicas >= 2);
    CHECK(degraded.makespan == simulate(schedule, costs, network, {}, Replicas::kUnfolded).makespan);
  }

  TEST_CASE("a network that does not fit its schedule is refused") {
    const Schedule schedule = lowered("1f1b", 4, 8);
    const CostTable costs = whole_costs(4, 1, 2);
    NetworkSpec network = one_trunk(schedule, 1e9);
    network.activation_route.pop_back();
    CHECK_THROWS_AS(simulate(schedule, costs, network), SpecError);
    network = one_trunk(schedule, -1);
    CHECK_THROWS_WITH_AS(simulate(schedule, costs, network),
                         "the network of the simulation: link trunk has a capacity of -1 bytes/s: give one above 0",
                         SpecError);
    network = one_trunk(schedule, 1e9);
    network.speeds = {1, 1, 0, 1};
    CHECK_THROWS_AS(simulate(schedule, costs, network), SpecError);
    CHECK_THROWS_WITH_AS(place(fabric_of(ring_of(3, 1e9)), 1, {.pipeline = 4}, schedule, costs),
                         "the layout has 4 ranks, but the network connects 3 devices: use fewer ranks", SpecError);
  }
}

TEST_SUITE("oracle") {
  TEST_CASE("all boundaries on one trunk of 1e9 B/s take what SimGrid computes, within its own 0.2 %") {
    const Schedule schedule = lowered("1f1b", 64, 512);
    const CostTable costs = message_costs(schedule, 1, 2, 0.5e-3, 1e9, 1'000'000);
    const Simulation simulation =
        simulate(schedule, costs, one_trunk(schedule, 1e9), {.validate = false, .record_timeline = false});
    CHECK(simulation.engine == "events");
    CHECK(makespan_s(simulation) == doctest::Approx(1730.04).epsilon(0.002));
  }

  TEST_CASE("the event engine takes what SimGrid computes point to point") {
    const Schedule schedule = lowered("1f1b", 8, 64);
    const CostTable costs = message_costs(schedule, 1, 2, 0.5e-3, 1e9, 500'000);
    const NetworkSpec network = private_links(schedule, costs);
    const EventTimes times =
        event_times(schedule, event_program(schedule, costs, network, Sends::kBuffered), network, Sends::kBuffered);
    CHECK(to_seconds(*std::ranges::max_element(times.end)).count() == doctest::Approx(213.124).epsilon(1e-6));
  }

  TEST_CASE("a ring of 50 GiB/s and 500 ns takes what ASTRA-sim computes, within 0.1 %") {
    struct Row {
      int ranks, microbatches;
      double answer_s;
    };
    for (const Row& row : {Row{8, 16, 81'520'000e-9}, Row{16, 64, 283'324'000e-9}}) {
      const Schedule schedule = lowered("1f1b", row.ranks, row.microbatches);
      const double rate = 50.0 * (1 << 30);
      const CostTable costs = message_costs(schedule, 1e-3, 2e-3, 500e-9, rate, 16 << 20);
      // A hair below the messages' own rate, so that the links limit and the event engine answers.
      const Fabric ring = fabric_of(ring_of(row.ranks, rate * (1 - 1e-6)));
      const Simulation simulation = simulate(schedule, costs, place(ring, 1, {.pipeline = row.ranks}, schedule, costs));
      CHECK(simulation.engine == "events");
      CHECK(makespan_s(simulation) == doctest::Approx(row.answer_s).epsilon(0.001));
    }
  }
}

}  // namespace plumb::test
