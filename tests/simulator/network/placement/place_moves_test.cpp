#include "simulator/network/placement/place_moves.h"

#include <doctest/doctest.h>

#include "schedules/dependencies/action_table.h"
#include "schedules/forms/text_form.h"
#include "simulator/network/placement/place.h"
#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

/// Returns costs with which every move takes `move` seconds alone and moves `bytes` bytes.
CostTable move_costs(const Schedule& schedule, double forward, double backward, double move, std::int64_t bytes) {
  CostTable costs = whole_costs(stage_count(schedule), forward, backward);
  for (StageCosts& stage : costs.stages) {
    stage.memory.forward_bytes = bytes;
    for (const Op op : {Op::kOffload, Op::kReload, Op::kEvict, Op::kLoad})
      stage.segments[static_cast<std::size_t>(op)] = {{Segment{.seconds = Seconds{move}}}};
  }
  return costs;
}

Fabric nodes_with_hub(int nodes, int devices_per_node, NodeHub hub = NodeHub::kNvSwitch, double attachment = 1e18) {
  return fabric_of(FabricSpec{.nodes = nodes,
                              .devices_per_node = devices_per_node,
                              .hub = hub,
                              .port_bytes_per_second = 2e9,
                              .attachment_bytes_per_second = attachment,
                              .nics_per_node = devices_per_node,
                              .nic_bytes_per_second = 1e9});
}

std::map<std::string, double> shares_of(const NetworkSpec& network, Op op, std::size_t at) {
  std::map<std::string, double> shares;
  const std::int32_t route = network.move_routes[move_number(op)][at];
  REQUIRE(route != kNoRoute);
  for (const LinkUse& use : network.routes[route].uses) shares[network.links[use.link].name] = use.share;
  return shares;
}

double end_s(const Simulation& simulation, Op op, int rank, int microbatch) {
  for (const Span& span : simulation.timeline.ranks[rank].spans) {
    if (span.action.op == op && span.action.microbatch == microbatch) return to_seconds(span.end).count();
  }
  return -1;
}

}  // namespace

TEST_SUITE("place_moves") {
  TEST_CASE("what is offloaded crosses its device's link, its switch's and its node's memory") {
    const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}), {.offload = 1});
    const CostTable costs = move_costs(schedule, 1, 2, 1, 1'000'000'000);
    const Fabric fabric = nodes_with_hub(2, 2);
    const HostLinks host{.devices_per_node = 2,
                         .device_bytes_per_second = 1e9,
                         .memory_bytes_per_second = 1.5e9,
                         .devices_per_switch = 2};
    const NetworkSpec network =
        with_moves(place(fabric, 2, {.pipeline = 4}, schedule, costs), fabric, host, {.pipeline = 4}, schedule);
    CHECK(shares_of(network, Op::kOffload, 0) ==
          std::map<std::string, double>{{"host_up:rank0", 1}, {"switch_up:node0.0", 1}, {"host_memory:node0", 1}});
    CHECK(shares_of(network, Op::kReload, 2) ==
          std::map<std::string, double>{{"host_down:rank2", 1}, {"switch_down:node1.0", 1}, {"host_memory:node1", 1}});
    CHECK(network.move_routes[move_number(Op::kEvict)].empty());
  }

  TEST_CASE("on a node of PCIe it crosses the port, before a NIC on the device's switch the attachment") {
    const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}), {.offload = 1});
    const CostTable costs = move_costs(schedule, 1, 2, 1, 1'000'000'000);
    HostLinks host{.devices_per_node = 2, .device_bytes_per_second = 4e9, .memory_bytes_per_second = 100e9};
    host.link = DeviceLink::kPort;
    const Fabric pcie = nodes_with_hub(2, 2, NodeHub::kPcie);
    // A move at its own rate of 4 GB/s takes the whole link, on which others reach 2 GB/s.
    CHECK(shares_of(with_moves(place(pcie, 2, {.pipeline = 4}, schedule, costs), pcie, host, {.pipeline = 4}, schedule),
                    Op::kOffload,
                    1) == std::map<std::string, double>{{"port_up:rank1", 0.5}, {"host_memory:node0", 1}});
    host.link = DeviceLink::kAttachment;
    const Fabric behind = nodes_with_hub(2, 2, NodeHub::kNvSwitch, 4e9);
    CHECK(shares_of(
              with_moves(place(behind, 2, {.pipeline = 4}, schedule, costs), behind, host, {.pipeline = 4}, schedule),
              Op::kReload, 1) == std::map<std::string, double>{{"attachment_down:rank1", 1}, {"host_memory:node0", 1}});
  }

  TEST_CASE("what is evicted goes the way of a message to the partner rank and back") {
    const Schedule schedule = lowered("bpipe", 4, 8);
    const CostTable costs = move_costs(schedule, 1, 2, 1, 1'000'000'000);
    const Fabric fabric = nodes_with_hub(1, 4);
    const NetworkSpec network =
        with_moves(place(fabric, 4, {.pipeline = 4}, schedule, costs), fabric, {}, {.pipeline = 4}, schedule);
    CHECK(shares_of(network, Op::kEvict, 0) ==
          std::map<std::string, double>{{"port_up:rank0", 1}, {"port_down:rank3", 1}});
    CHECK(shares_of(network, Op::kLoad, 0) ==
          std::map<std::string, double>{{"port_up:rank3", 1}, {"port_down:rank0", 1}});
  }

  TEST_CASE("two devices that offload into a memory that holds up one of them share it from then on") {
    // F ends at 1 s on rank 0 and at 2 s on rank 1; each moves for 2 s alone. From 2 s both go at half speed: rank 0
    // has 1 s left and ends at 4 s, rank 1 has then 1 s left, alone again, and ends at 5 s.
    const Schedule schedule = parse_schedule(
        "0F0 0SEND_F0 0OFFLOAD0 0RELOAD0 0RECV_B0 0B0\n1RECV_F0 1F0 1OFFLOAD0 1RELOAD0 1B0 1SEND_B0\n", "");
    const CostTable costs = move_costs(schedule, 1, 1, 2, 2'000'000'000);
    const Fabric fabric = nodes_with_hub(1, 2);
    const HostLinks host{.devices_per_node = 2, .device_bytes_per_second = 1e9, .memory_bytes_per_second = 1e9};
    const NetworkSpec network =
        with_moves(place(fabric, 2, {.pipeline = 2}, schedule, costs), fabric, host, {.pipeline = 2}, schedule);
    const Simulation shared = simulate(schedule, costs, network);
    CHECK(shared.engine == "events");
    // RELOAD0 of rank 0 follows at 4 s and shares with the OFFLOAD of rank 1, which has 1 s left: until 6 s; then the
    // RELOAD of rank 1 beside that of rank 0, which has 1 s left: until 8 s; the last 1 s alone.
    CHECK(end_s(shared, Op::kOffload, 0, 0) == 4);
    CHECK(end_s(shared, Op::kOffload, 1, 0) == 6);
    CHECK(end_s(shared, Op::kReload, 0, 0) == 8);
    CHECK(end_s(shared, Op::kReload, 1, 0) == 9);
    // With room for both nothing is shared, and the compiled engine answers.
    HostLinks wide = host;
    wide.memory_bytes_per_second = 4e9;
    const Simulation alone = simulate(
        schedule, costs,
        with_moves(place(fabric, 2, {.pipeline = 2}, schedule, costs), fabric, wide, {.pipeline = 2}, schedule));
    CHECK(alone.engine == "compiled");
    CHECK(end_s(alone, Op::kOffload, 0, 0) == 3);
    CHECK(end_s(alone, Op::kReload, 1, 0) == 6);
  }

  TEST_CASE("an evicted activation shares its port with a message") {
    // At 1 s rank 0 begins to send 2 GB and to evict 4 GB, both at 2 GB/s alone, over its port of 2 GB/s: the message
    // ends at 3 s, when 2 GB of the other are left, alone until 4 s. Four ranks, so that the partner is rank 3.
    const Schedule schedule = parse_schedule(
        "0F0 0SEND_F0 0EVICT0 0LOAD0 0RECV_B0 0B0\n1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0\n"
        "2RECV_F0 2F0 2SEND_F0 2RECV_B0 2B0 2SEND_B0\n3RECV_F0 3F0 3B0 3SEND_B0\n",
        "");
    CostTable costs = move_costs(schedule, 1, 1, 2, 4'000'000'000);
    costs.default_link.bytes_per_second = 2e9;
    costs.stages[0].activation_message_bytes = 2'000'000'000;
    const Fabric fabric = nodes_with_hub(1, 4);
    const NetworkSpec network =
        with_moves(place(fabric, 4, {.pipeline = 4}, schedule, costs), fabric, {}, {.pipeline = 4}, schedule);
    const Simulation shared = simulate(schedule, costs, network);
    CHECK(shared.engine == "events");
    CHECK(end_s(shared, Op::kSendActivation, 0, 0) == 3);
    CHECK(end_s(shared, Op::kEvict, 0, 0) == 4);
    CHECK(shared.added == kSecond);
  }

  TEST_CASE("replicas that offload into shared memories take the same times folded and one by one") {
    for (const int data : {1, 2, 7}) {
      for (const bool slow : {false, true}) {
        const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 6}),
                                        {.offload = 1, .data = {.enabled = true, .zero = 1}});
        CostTable costs = move_costs(schedule, 1e-3, 2e-3, 3e-3, 30'000'000);
        costs.default_link = {.latency = Seconds{1e-6}, .bytes_per_second = 1e9};
        for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 400'000;
        price_collectives(costs, 10'000'000, Seconds{0.01});
        const Fabric fabric = nodes_with_hub(2 * data, 4, NodeHub::kNvSwitch, 10e9);
        const HostLinks host{.devices_per_node = 4,
                             .device_bytes_per_second = 10e9,
                             .memory_bytes_per_second = 25e9,
                             .devices_per_switch = 2,
                             .link = DeviceLink::kAttachment};
        const ProcessGrid grid{.tensor = 2, .context = data, .pipeline = 4};
        NetworkSpec network = with_moves(place(fabric, 4, grid, schedule, costs), fabric, host, grid, schedule);
        if (slow) {
          network.speeds.assign(static_cast<std::size_t>(network.replicas) * 4, 1.0);
          network.speeds[1] = 0.5;
        }
        const Simulation folded = simulate(schedule, costs, network);
        const Simulation unfolded = simulate(schedule, costs, network, {}, Replicas::kUnfolded);
        CHECK(folded.engine == "events");
        CHECK(folded.added > SimTime{0});
        CHECK(folded.makespan == unfolded.makespan);
        CHECK(folded.busy == unfolded.busy);
        if (!slow) CHECK(folded.replicas < unfolded.replicas);
      }
    }
  }

  TEST_CASE("a host that moves nothing is refused") {
    const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}), {.offload = 1});
    const CostTable costs = move_costs(schedule, 1, 2, 1, 1);
    const Fabric fabric = nodes_with_hub(1, 4);
    CHECK_THROWS_AS(
        with_moves(place(fabric, 4, {.pipeline = 4}, schedule, costs), fabric, {}, {.pipeline = 4}, schedule),
        SpecError);
  }
}

}  // namespace plumb::test
