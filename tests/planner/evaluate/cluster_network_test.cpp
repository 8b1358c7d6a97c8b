#include "planner/evaluate/cluster_network.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/search/evaluate_plan.h"
#include "planner/search/plan.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"
#include "tests/planner/round_plan.h"

namespace plumb::test {
namespace {

Simulation simulated(const Plan& plan, const NetworkOptions& network = {}) {
  return evaluate(plan, {}, network).simulation;
}

}  // namespace

TEST_CASE("messages and gradient sums of one step share the NICs") {
  const Simulation shared = simulated(round_plan(kNodeWide));
  CHECK(shared.engine == "events");
  CHECK(shared.replicas == 1);
  CHECK(shared.added > SimTime{0});
  const Simulation alone = simulated(round_plan(kNodeWide), {.share_links = false});
  CHECK(alone.engine == "compiled");
  CHECK(alone.makespan == shared.makespan - shared.added);
}

TEST_CASE("replicas folded into one and one by one take the same time") {
  for (const int data : {1, 2}) {
    Layout layout = kNodeWide;
    layout.data = data;
    const Plan plan = round_plan(layout, 8 * data);
    const Simulation folded = simulated(plan);
    const Simulation unfolded = simulated(plan, {.replicas = Replicas::kUnfolded});
    CHECK(unfolded.replicas == 4 * data);
    CHECK(folded.makespan == unfolded.makespan);
    CHECK(folded.busy == unfolded.busy);
  }
}

TEST_CASE("an all-reduce by switches that reduce takes its price, faster than a ring's bytes over the ports") {
  // NVLS on 8 H100 shows 476 GB/s of bus bandwidth; a port carries 367. What it moves is scaled to what ports carry.
  const Plan plan{.model = small_gpt(),
                  .cluster = preset_cluster("h100"),
                  .training = {.global_batch = 32, .sequence = 512},
                  .layout = {.data = 8, .zero = 0}};
  const Simulation shared = simulated(plan);
  const Simulation alone = simulated(plan, {.share_links = false});
  CHECK(shared.makespan == alone.makespan);
  CHECK(shared.added == SimTime{0});
}

TEST_CASE("tensor groups and gradient rings of one node share its ports, folded as one by one") {
  // tp = 2 and dp = 2 fill a node: buckets are summed beside the last backward and its all-reduces.
  Layout layout{.data = 2, .tensor = 2, .pipeline = 2, .zero = 0, .microbatch = 4, .schedule = "1f1b"};
  layout.bucket_mib = 4;
  const Simulation shared = simulated(round_plan(layout, 8));
  CHECK(shared.engine == "events");
  CHECK(shared.replicas == 1);
  CHECK(shared.added > SimTime{0});
  CHECK(shared.makespan == simulated(round_plan(layout, 8), {.replicas = Replicas::kUnfolded}).makespan);
  // Behind the last backward nothing runs beside the sums, which share nothing but their own links.
  layout.bucket_mib = 0;
  const Simulation behind = simulated(round_plan(layout, 8));
  CHECK(behind.added == SimTime{0});
}

TEST_CASE("devices that share a NIC take a collective's price where all of them do the same at once") {
  for (const int nics : {4, 2, 1}) {
    for (const bool routed : {false, true}) {
      for (const int tensor : {1, 4}) {
        Plan plan = round_plan({.data = 16 / tensor, .tensor = tensor, .zero = 0, .microbatch = 2}, 32);
        if (routed) plan.model.experts = plan.model.experts_per_token = 8, plan.layout.expert = tensor == 1 ? 8 : 4;
        plan.cluster.wiring.nics_per_node = nics;
        CAPTURE(nics);
        CAPTURE(routed);
        CAPTURE(tensor);
        const Simulation alone = simulated(plan, {.share_links = false});
        const Simulation shared = simulated(plan);
        CHECK(shared.makespan == alone.makespan);
      }
    }
  }
}

TEST_CASE("a collective's price counts on its devices' shares of their NICs") {
  const Schedule order = lower(make_schedule("1f1b", {.ranks = 1, .microbatches = 1}));
  const ProcessGrid grid{.context = 8};
  const auto counted = [&](int nics, Group group, CollectiveKind kind) {
    ClusterSpec cluster = round_cluster(8);  // two nodes of four, 10 GB/s a NIC
    cluster.wiring.nics_per_node = nics;
    CostTable costs{.stages = std::vector<StageCosts>(1)};
    costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)] = {
        {{.kind = Segment::Kind::kCollective, .seconds = Seconds{1}, .group = group, .collective = kind, .bytes = 1}}};
    const NetworkSpec network = cluster_network(cluster, grid, {.ranks = grid, .experts = grid}, order, costs, {});
    REQUIRE(network.inner.size() == 1);
    return network.inner.front().most_bytes_per_second;
  };
  // Four of a device's seven parts leave the node.
  CHECK(counted(4, Group::kExpert, CollectiveKind::kAllToAll) == doctest::Approx(10e9 * 7 / 4));
  CHECK(counted(2, Group::kExpert, CollectiveKind::kAllToAll) == doctest::Approx(5e9 * 7 / 4));
  // Four rings.
  CHECK(counted(4, Group::kContext, CollectiveKind::kAllGather) == doctest::Approx(40e9));
  CHECK(counted(1, Group::kContext, CollectiveKind::kAllGather) == doctest::Approx(10e9));
}

TEST_CASE("offloaded activations share what leads to the host, as the cluster says, folded as one by one") {
  Plan plan = round_plan({.data = 1, .tensor = 4, .pipeline = 4, .microbatch = 1, .schedule = "1f1b"});
  plan.layout.offload.activations = true;
  plan.cluster.host =
      HostSpec{.memory_bytes = 1LL << 40, .memory_bytes_per_second = 1e12, .device_bytes_per_second = 25e9};
  const SimTime roomy = simulated(plan).makespan;
  const auto time = [&](const HostSpec& host, const NetworkOptions& options = {}) {
    Plan other = plan;
    other.cluster.host = host;
    const Simulation simulation = simulated(other, options);
    NetworkOptions unfolded = options;
    unfolded.replicas = Replicas::kUnfolded;
    CHECK(simulation.makespan == simulated(other, unfolded).makespan);
    return simulation.makespan;
  };
  HostSpec narrow = *plan.cluster.host;
  narrow.memory_bytes_per_second = 25e9;  // four devices of 25 GB/s
  CHECK(time(narrow) > roomy);
  HostSpec on_switch = *plan.cluster.host;
  on_switch.devices_per_switch = 4;
  // Four devices share 25 GB/s as well, but there and back apart.
  CHECK(time(on_switch) > roomy);
  CHECK(time(on_switch) < time(narrow));
  HostSpec beside_nic = *plan.cluster.host;
  beside_nic.device_bytes_per_second = 10e9;
  const SimTime own_links = time(beside_nic);
  beside_nic.nic_shares_device_link = true;
  CHECK(time(beside_nic) > own_links);
  CHECK(time(*plan.cluster.host, {.degraded = {parse_degraded_links("link:host_up:rank3=0.1")}}) > roomy);
  check_refused<SpecError>([&] { simulated(plan, {.degraded = {parse_degraded_links("link:host_memory:node0=0")}}); },
                           "without host_memory:node0", "offload nothing");
}

TEST_CASE("BPipe's evicted activations are priced, and share the ports with messages") {
  Plan plan = round_plan({.data = 1, .tensor = 1, .pipeline = 4, .schedule = "bpipe"}, 4);
  const Evaluation evaluation = evaluate(plan);
  const CostTable& costs = evaluation.costs;
  const Action evict{.op = Op::kEvict};
  // 100 GB/s and 1 us.
  CHECK(to_seconds(duration_of(costs, evict)).count() ==
        doctest::Approx(1e-6 + static_cast<double>(costs.stages[0].memory.forward_bytes) / 100e9));
  CHECK(evaluation.simulation.engine == "events");
}

TEST_CASE("one stage and one replica share nothing") {
  const Layout layout{.data = 1, .tensor = 4, .pipeline = 2};
  CHECK(simulated(round_plan(layout, 8)).engine == "compiled");
}

TEST_CASE("a slow rank slows its tensor group, and its replica ends the step") {
  const Plan plan = round_plan(kNodeWide);
  const Simulation normal = simulated(plan);
  const Simulation slow = simulated(plan, {.slow = {parse_slow_rank("rank=5:0.5")}});
  CHECK(slow.makespan > normal.makespan);
  CHECK(slow.replicas == 2);  // those of the slow rank's tensor group, and the others
  CHECK(slow.makespan ==
        simulated(plan, {.replicas = Replicas::kUnfolded, .slow = {parse_slow_rank("rank=5:0.5")}}).makespan);
  // Ranks 4 to 7 are the tensor group of replica 1 of stage 0.
  const std::vector<double> speeds = rank_speeds({.tensor = 4, .data = 2, .pipeline = 2}, {{5, 0.5}});
  for (int replica = 0; replica < 8; ++replica) {
    CHECK(speeds[2 * replica] == (replica >= 4 ? 0.5 : 1.0));
    CHECK(speeds[2 * replica + 1] == 1.0);
  }
}

TEST_CASE("a degraded NIC delays the step, and one that was not used does not") {
  const Plan plan = round_plan(kNodeWide);
  const Simulation normal = simulated(plan);
  CHECK(simulated(plan, {.degraded = {parse_degraded_links("nic:node1=0.2")}}).makespan > normal.makespan);
  CHECK(simulated(plan, {.degraded = {parse_degraded_links("nic:rank6=0.2")}}).makespan > normal.makespan);
  const Plan one_node = round_plan({.data = 1, .tensor = 1, .pipeline = 4}, 4);
  const Simulation inside = simulated(one_node);
  CHECK(simulated(one_node, {.degraded = {parse_degraded_links("nvlink:rank2=0.1")}}).makespan > inside.makespan);
  CHECK(simulated(one_node, {.degraded = {parse_degraded_links("nic:node0=0.1")}}).makespan == inside.makespan);
}

TEST_CASE("what a failed link cut off goes another way, and costs what that way takes") {
  const Plan plan = round_plan(kNodeWide);
  const SimTime normal = simulated(plan).makespan;
  const auto time = [&](const char* degraded, Replicas replicas = Replicas::kFolded) {
    return simulated(plan, {.replicas = replicas, .degraded = {parse_degraded_links(degraded)}}).makespan;
  };
  // Rank 5 sends through another rank's NIC, and its port's traffic over the network: slower, but not cut off.
  for (const char* failed : {"nic:rank5=0", "nvlink:rank5=0", "link:nic_up:node1.1=0"}) {
    CHECK(time(failed) > normal);
    CHECK(time(failed) == time(failed, Replicas::kUnfolded));
  }
  CHECK(time("link:nic_up:node1.1=0.25") > normal);

  // A node alone has nothing else.
  Plan one_node = round_plan({.data = 1, .tensor = 1, .pipeline = 4}, 4);
  one_node.cluster.network.reset();
  check_refused<SpecError>([&] { simulated(one_node, {.degraded = {parse_degraded_links("nvlink:rank2=0")}}); },
                           "nothing leads from rank 1 to rank 2", "use other ranks");
  check_refused<SpecError>([&] { simulated(plan, {.degraded = {parse_degraded_links("link:nic_up:node1=0")}}); },
                           "no link nic_up:node1", "did you mean \"nic_up:node");
}

TEST_CASE("late receives cost time where sends wait for them, and nothing where they do not") {
  const Plan plan = round_plan(kNodeWide);
  const auto time = [&](Sends sends, Receives receives) {
    return evaluate(plan, {.sends = sends}, {}, receives).simulation.makespan;
  };
  CHECK(time(Sends::kRendezvous, Receives::kLate) > time(Sends::kRendezvous, Receives::kEarly));
  CHECK(time(Sends::kBuffered, Receives::kLate) == time(Sends::kBuffered, Receives::kEarly));
}

TEST_CASE("an oversubscribed spine makes the step longer") {
  Plan plan = round_plan(kNodeWide);
  const Simulation normal = simulated(plan);
  plan.cluster.wiring = {.nodes_per_leaf = 1, .oversubscription = 8};
  CHECK(simulated(plan).makespan > normal.makespan);
}

TEST_CASE("compute beside collectives lasts longer where the device says so") {
  // ZeRO 2 reduces behind every backward; the network is fast enough for compute to set the pace.
  Plan plan = round_plan({.data = 2, .tensor = 4, .pipeline = 1, .zero = 2}, 8);
  plan.cluster.network->bytes_per_second = 1e12;
  const Simulation normal = simulated(plan);
  plan.cluster.device.collective_slowdown = 0.3;
  const Simulation slowed = simulated(plan);
  CHECK(slowed.engine == "events");
  CHECK(slowed.makespan > normal.makespan);
}

TEST_CASE("the cluster file says how it is wired, and what is not said is not written") {
  ClusterSpec cluster = round_cluster(8);
  CHECK(!to_json(cluster)["network"].contains("oversubscription"));
  cluster.wiring = {.hub = NodeHub::kPcie, .leaves = Leaves::kByNode, .nodes_per_leaf = 2, .oversubscription = 1.5};
  cluster.device.collective_slowdown = 0.25;
  const ClusterSpec again = cluster_from_json(nlohmann::json::parse(to_json(cluster).dump()), "again");
  CHECK(again.wiring == cluster.wiring);
  CHECK(again.device == cluster.device);
  nlohmann::json json = nlohmann::json::parse(to_json(cluster).dump());
  json["node"]["hub"] = "pci";
  check_refused<SpecError>([&] { cluster_from_json(json, "file"); }, "hub", "nvswitch or pcie");
}

TEST_CASE("what does not exist is refused with the range") {
  const Plan plan = round_plan(kNodeWide);
  const auto refused = [&](const NetworkOptions& options, const char* what, const char* range) {
    check_refused<SpecError>([&] { simulated(plan, options); }, what, range);
  };
  refused({.slow = {parse_slow_rank("rank=16:0.5")}}, "rank 16", "0 to 15");
  refused({.degraded = {parse_degraded_links("nic:node4=0.5")}}, "node 4", "0 to 3");
  refused({.degraded = {parse_degraded_links("nvlink:rank99=0.5")}}, "rank 99", "0 to 15");
  for (const char* text : {"rank=1", "rank=1:0", "rank=1:1.5", "rank=x:0.5", "17:0.5", ""}) {
    check_refused<SpecError>([&] { parse_slow_rank(text); }, "slow", "rank=17:0.8");
  }
  for (const char* text : {"nic:node3", "nic:node3=-0.1", "nic:node3=1.1", "link:=0", "nvlink:node3=0.5",
                           "pcie:rank1=0.5", "nic:3=0.5", "nic=0.5"}) {
    check_refused<SpecError>([&] { parse_degraded_links(text); }, "degrade", "nic:node3=0.5");
  }
}

}  // namespace plumb::test
