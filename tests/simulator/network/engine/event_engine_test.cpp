#include "simulator/network/engine/event_engine.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "simulator/engine/action_costs.h"
#include "simulator/engine/engine.h"
#include "tests/simulator/network/networks.h"

namespace plumb::test {
namespace {

/// Requires that every start and end of the two engines agree to the picosecond.
void require_equal_times(const Schedule& schedule, const CostTable& costs, const NetworkSpec& network, Sends sends) {
  const EventProgram program = event_program(schedule, costs, network, sends);
  const EventTimes events = event_times(schedule, program, network, sends);
  const ActionTable ids(schedule);
  const ActionTimes table = action_times(schedule, ids, compile(schedule, sends), convert_costs(schedule, costs));
  for (std::size_t id = 0; id < table.start.size(); ++id) {
    REQUIRE(events.start[id] == table.start[id]);
    REQUIRE(events.end[id] == table.end[id]);
  }
}

}  // namespace

TEST_SUITE("event_engine") {
  TEST_CASE("where no two transfers share a link the times are the compiled engine's, over the catalogue") {
    struct Shape {
      int ranks, microbatches, chunks;
    };
    int schedules = 0;
    for (const Shape& shape : {Shape{1, 3, 1}, Shape{2, 4, 1}, Shape{4, 8, 1}, Shape{4, 8, 2}, Shape{3, 7, 2}}) {
      for (const Schedule& schedule : all_lowered(shape.ranks, shape.microbatches, shape.chunks)) {
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          const CostTable costs = random_costs(schedule, seed);
          for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
            require_equal_times(schedule, costs, private_links(schedule, costs), sends);
            require_equal_times(schedule, costs, {}, sends);
          }
        }
        ++schedules;
      }
    }
    CHECK(schedules > 60);
  }

  TEST_CASE("so they are with activations that are offloaded") {
    for (const Schedule& schedule : all_lowered(4, 8, 1, {.offload = 1})) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const CostTable costs = random_costs(schedule, seed);
        for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous})
          require_equal_times(schedule, costs, private_links(schedule, costs), sends);
      }
    }
  }

  TEST_CASE("so they are with data-parallel collectives of every ZeRO stage") {
    for (const std::string_view name : {"1f1b", "gpipe", "zb-h1", "interleaved"}) {
      for (int zero = 0; zero <= 3; ++zero) {
        const int chunks = name == "interleaved" ? 2 : 1;
        const Schedule schedule = lower(make_schedule(name, {.ranks = 4, .microbatches = 8, .chunks = chunks}),
                                        {.data = {.enabled = true, .zero = zero}});
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          CostTable costs = random_costs(schedule, seed);
          price_collectives(costs, 1000 + static_cast<std::int64_t>(seed),
                            Seconds{static_cast<double>(700 + 31 * seed) * 1e-12});
          for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous})
            require_equal_times(schedule, costs, private_links(schedule, costs), sends);
        }
      }
    }
  }

  TEST_CASE("so they are with collectives inside actions, that block them and that run beside their compute") {
    for (const Schedule& schedule : all_lowered(4, 8, 1)) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CostTable costs = random_costs(schedule, seed);
        add_inner_collectives(costs, seed);
        for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous})
          require_equal_times(schedule, costs, private_links(schedule, costs), sends);
      }
    }
  }

  TEST_CASE("so they are with gradient buckets that are reduced inside the last backward") {
    for (const std::string_view name : {"1f1b", "zb-h1", "interleaved", "dualpipev", "seq1f1b"}) {
      const Schedule order = make_schedule(name, {.ranks = 4,
                                                  .microbatches = 8,
                                                  .chunks = name == "interleaved" ? 2 : 1,
                                                  .slices = name == "seq1f1b" ? 2 : 1});
      const Schedule schedule = lower(order, {.data = {.enabled = true, .zero = 1, .buckets = {3}}});
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CostTable costs = random_costs(schedule, seed, 3);
        price_collectives(costs, 1000 + static_cast<std::int64_t>(seed),
                          Seconds{static_cast<double>(70 + 31 * seed) * 1e-12});
        for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous})
          require_equal_times(schedule, costs, private_links(schedule, costs), sends);
        add_inner_collectives(costs, seed);
        require_equal_times(schedule, costs, private_links(schedule, costs), Sends::kBuffered);
      }
    }
  }

  TEST_CASE("an all-to-all inside a forward shares the NIC with a message, and stretches its action") {
    // F0 lasts to 3 s, then its message leaves for 2 s alone; F1 computes to 4 s and exchanges 2 s. From 4 s both have
    // half the NIC: the message has 1 s of work left and ends at 6 s, the exchange goes on alone and ends at 7 s.
    const Schedule schedule = parse_schedule("0F0 0SEND_F0 0F1 0SEND_F1 0B0 0B1\n1RECV_F0 1F0 1RECV_F1 1F1\n", "");
    CostTable costs = whole_costs(2, 1, 1);
    costs.default_link.bytes_per_second = 1e9;
    costs.stages[0].activation_message_bytes = 2'000'000'000;
    const auto exchange = [](bool beside) {
      return Segment{.kind = Segment::Kind::kCollective,
                     .seconds = Seconds{2},
                     .beside = beside,
                     .group = Group::kExpert,
                     .collective = CollectiveKind::kAllToAll,
                     .bytes = 2'000'000'000};
    };
    auto& forward = costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)].front();
    forward = {{.seconds = Seconds{1}}, exchange(false)};
    NetworkSpec network{.links = {{"nic", 1e9}}, .routes = {{.uses = {{0, 1}}}}};
    network.activation_route = {0, kNoRoute};
    network.inner = {
        {.group = Group::kExpert, .kind = CollectiveKind::kAllToAll, .stage = 0, .replicas = {0}, .route = 0}};
    const auto times = [&] {
      return event_times(schedule, event_program(schedule, costs, network, Sends::kBuffered), network,
                         Sends::kBuffered);
    };
    const EventTimes blocking = times();
    CHECK(blocking.end[0] == 3 * kSecond);
    CHECK(blocking.end[1] == 6 * kSecond);
    CHECK(blocking.start[2] == 3 * kSecond);
    CHECK(blocking.end[2] == 7 * kSecond);

    // Beside 4 s of compute the same exchange delays nothing, though message 0 holds it up from 4 s on: of its 2 s it
    // has 1 s left at 6 s, when that message is gone at 8 s both are. Beside 1 s it is what the action lasts.
    forward = {{.seconds = Seconds{4}}, exchange(true)};
    const EventTimes hidden = times();
    CHECK(hidden.end[0] == 4 * kSecond);
    CHECK(hidden.end[2] == 8 * kSecond);
    CHECK(hidden.end[1] == 8 * kSecond);
    forward = {{.seconds = Seconds{1}}, exchange(true)};
    const EventTimes longer = times();
    CHECK(longer.end[0] == 2 * kSecond);
    CHECK(longer.end[1] == 6 * kSecond);
    CHECK(longer.end[2] == 6 * kSecond);
  }

  TEST_CASE("a collective inside an action starts when the last replica of its group has come to it") {
    // F: 1 s of compute, 1 s with the other replica; B: 1 s. Replica 1 computes at half speed.
    const Schedule schedule = parse_schedule("0F0 0B0 0F1 0B1\n", "");
    CostTable costs = whole_costs(1, 1, 1);
    costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)].front().push_back(
        {.kind = Segment::Kind::kCollective, .seconds = Seconds{1}, .bytes = 1});
    NetworkSpec network{.replicas = 2, .speeds = {1, 0.5}};
    network.inner = {{.stage = 0, .replicas = {0, 1}}};
    const EventProgram program = event_program(schedule, costs, network, Sends::kBuffered);
    const EventTimes times = event_times(schedule, program, network, Sends::kBuffered);
    using Ends = std::vector<SimTime>;
    CHECK(times.end == Ends{3 * kSecond, 4 * kSecond, 8 * kSecond, 9 * kSecond,  //
                            3 * kSecond, 5 * kSecond, 8 * kSecond, 10 * kSecond});
    network.inner.clear();  // without the group each goes its own way, and the wire is no slower than ever
    const EventTimes apart =
        event_times(schedule, event_program(schedule, costs, network, Sends::kBuffered), network, Sends::kBuffered);
    CHECK(apart.end == Ends{2 * kSecond, 3 * kSecond, 5 * kSecond, 6 * kSecond,  //
                            3 * kSecond, 5 * kSecond, 8 * kSecond, 10 * kSecond});
  }

  TEST_CASE("a bucket inside a backward whose collective is held up is complete that much later") {
    // B: 2 s of compute, 2 s of all-reduce over a link of half its rate, so 4 s; buckets at 1 s and 3 s of B.
    const Schedule schedule = parse_schedule("0F0 0REDUCE_GRAD 0REDUCE_GRAD/1 0B0 0OPTIMIZER_STEP");
    CostTable costs = whole_costs(1, 1, 2);
    price_collectives(costs, 1, Seconds{0.25});
    costs.stages[0].bucket_offsets = {Seconds{1}, Seconds{3}};
    costs.stages[0].segments[static_cast<std::size_t>(Op::kBackward)].front().push_back(
        {.kind = Segment::Kind::kCollective, .seconds = Seconds{2}, .bytes = 2});
    NetworkSpec network{.links = {{"port", 0.5}}, .routes = {{.uses = {{0, 1}}}}};
    network.inner = {{.stage = 0, .replicas = {0}, .route = 0}};
    const EventTimes times =
        event_times(schedule, event_program(schedule, costs, network, Sends::kBuffered), network, Sends::kBuffered);
    CHECK(times.start[1] == 2 * kSecond);
    CHECK(times.start[2] == 5 * kSecond);
    CHECK(times.end[3] == 7 * kSecond);
  }

  TEST_CASE("the moment at which a bucket is complete moves with its host's speed") {
    // F 1 s, B 4 s, buckets complete after 1 s and 3 s of B; each reduction takes 2.5 s.
    const Schedule schedule = parse_schedule("0F0 0REDUCE_GRAD 0REDUCE_GRAD/1 0B0 0OPTIMIZER_STEP");
    CostTable costs = whole_costs(1, 1, 4);
    price_collectives(costs, 1, Seconds{2.5});
    costs.stages[0].bucket_offsets = {Seconds{1}, Seconds{3}};
    const auto starts = [&](const NetworkSpec& network) {
      return event_times(schedule, event_program(schedule, costs, network, Sends::kBuffered), network, Sends::kBuffered)
          .start;
    };
    using Starts = std::vector<SimTime>;
    // At full speed the second reduction waits for the first, and the optimizer for both.
    CHECK(starts({}) == Starts{SimTime{0}, 2 * kSecond, 9 * kSecond / 2, kSecond, 7 * kSecond});
    // At half speed B lasts from 2 s to 10 s.
    CHECK(starts({.speeds = {0.5}}) == Starts{SimTime{0}, 4 * kSecond, 8 * kSecond, 2 * kSecond, 21 * kSecond / 2});
    // Half as fast beside a collective: of B, 1 s is done at 2 s, 2.25 s at 4.5 s, 3 s at 5.25 s, all at 7.25 s; the
    // second reduction ends at 7.75 s.
    CHECK(starts({.collective_slowdown = 1}) ==
          Starts{SimTime{0}, 2 * kSecond, 21 * kSecond / 4, kSecond, 31 * kSecond / 4});
  }

  TEST_CASE("16 MB of activations beside a gradient flow of 1 GB on one NIC of 50 GB/s take 0.64 ms, not 20") {
    const Schedule schedule =
        parse_schedule("0F0 0B0 0REDUCE_GRAD 0SEND_F0 0OPTIMIZER_STEP\n1RECV_F0 1F0 1B0 1OPTIMIZER_STEP\n", "");
    CostTable costs = whole_costs(2, 1, 1);
    costs.default_link.bytes_per_second = 50e9;
    costs.stages[0].activation_message_bytes = 16'000'000;
    price_collectives(costs, 1'000'000'000, Seconds{0.02});
    NetworkSpec network{.links = {{"nic", 50e9}}, .routes = {{.uses = {{0, 1}}}}};
    network.activation_route = {0, kNoRoute};
    network.gradient_route = {kNoRoute, kNoRoute};
    network.collectives = {{.op = Op::kReduceGrad, .stage = 0, .replicas = {0}, .route = 0}};
    const EventProgram program = event_program(schedule, costs, network, Sends::kBuffered);
    const EventTimes times = event_times(schedule, program, network, Sends::kBuffered);
    const ActionTable table(schedule);
    const std::int32_t send = table.find(Op::kSendActivation, 0, 0);
    CHECK(times.start[send] == 2 * kSecond);
    CHECK(times.end[send] - times.start[send] == SimTime{640'000'000});
    const std::int32_t reduce = 2;  // third action of rank 0
    CHECK(times.end[reduce] - times.start[reduce] == SimTime{20'320'000'000});
  }

  TEST_CASE("messages, gradient sums and parameter gathers of one NIC share it three ways") {
    // After its backward the rank sums, gathers and sends at once; alone each would take 1 s.
    Schedule schedule = parse_schedule(
        "0F0 0B0 0REDUCE_GRAD 0UNSHARD 0SEND_F0 0OPTIMIZER_STEP\n1RECV_F0 1F0 1B0 1OPTIMIZER_STEP\n", "");
    CostTable costs = whole_costs(2, 1, 1);
    costs.default_link.bytes_per_second = 1e9;
    costs.stages[0].activation_message_bytes = 1'000'000'000;
    price_collectives(costs, 1'000'000'000, Seconds{1});
    NetworkSpec network{.links = {{"nic", 1e9}}, .routes = {{.uses = {{0, 1}}}}};
    network.activation_route = {0, kNoRoute};
    network.collectives = {{.op = Op::kReduceGrad, .stage = 0, .replicas = {0}, .route = 0},
                           {.op = Op::kUnshard, .stage = 0, .replicas = {0}, .route = 0}};
    const EventProgram program = event_program(schedule, costs, network, Sends::kBuffered);
    const EventTimes times = event_times(schedule, program, network, Sends::kBuffered);
    for (const int id : {2, 3, 4}) {
      CHECK(times.start[id] == 2 * kSecond);
      CHECK(times.end[id] == 5 * kSecond);
    }
  }

  TEST_CASE("a slow rank's compute lasts longer by its share of the speed, and nothing else does") {
    const Schedule schedule = lowered("gpipe", 2, 1);
    const CostTable costs = whole_costs(2, 1, 2, 0.5);
    NetworkSpec network;
    network.speeds = {1.0, 0.8};
    // F0, hop, F1 and B1 at 0.8, hop, B0.
    CHECK(simulate(schedule, costs, network).makespan == kSecond * 6 - kSecond * 3 + kSecond * 15 / 4 + kSecond);
  }

  TEST_CASE("compute runs at 1/(1+x) while a collective of its rank is under way") {
    // REDUCE_GRAD of 3 s starts with B1 (2 s of work): it runs at half speed for 3 s, then half a second at full speed.
    Schedule schedule = parse_schedule("0F0 0F1 0B0 0REDUCE_GRAD 0B1 0REDUCE_GRAD 0OPTIMIZER_STEP\n", "");
    CostTable costs = whole_costs(1, 1, 2);
    price_collectives(costs, 1000, Seconds{3});
    NetworkSpec network{.collective_slowdown = 1};
    const EventProgram program = event_program(schedule, costs, network, Sends::kBuffered);
    const EventTimes times = event_times(schedule, program, network, Sends::kBuffered);
    CHECK(times.start[4] == 4 * kSecond);
    CHECK(times.end[4] == 4 * kSecond + 3 * kSecond + kSecond / 2);
    CHECK(times.end[5] == times.end[4] + 3 * kSecond);

    // A third slower for the first 3 of 5 seconds: 3 / (4/3) = 2.25 done, 2.75 to go.
    costs.stages[0].segments[static_cast<std::size_t>(Op::kBackward)].front().front().seconds = Seconds{5};
    network.collective_slowdown = 1.0 / 3;
    const EventTimes longer =
        event_times(schedule, event_program(schedule, costs, network, Sends::kBuffered), network, Sends::kBuffered);
    CHECK(longer.end[4] - longer.start[4] == kSecond * 23 / 4);
  }

  TEST_CASE("a collective of two replicas starts when the later one has issued it, and ends for both") {
    const Schedule schedule =
        lower(make_schedule("1f1b", {.ranks = 1, .microbatches = 2}), {.data = {.enabled = true, .zero = 0}});
    CostTable costs = whole_costs(1, 1, 2);
    price_collectives(costs, 1000, Seconds{1});
    NetworkSpec network{.replicas = 2};
    network.collectives = {{.op = Op::kReduceGrad, .stage = 0, .replicas = {0, 1}}};
    network.speeds = {1.0, 0.5};
    const EventProgram program = event_program(schedule, costs, network, Sends::kBuffered);
    const EventTimes times = event_times(schedule, program, network, Sends::kBuffered);
    const std::int32_t reduce = program.actions - 2;
    CHECK(times.start[reduce] == 12 * kSecond);
    CHECK(times.start[program.actions + reduce] == 12 * kSecond);
    CHECK(times.end[program.actions - 1] == 13 * kSecond);
  }

  TEST_CASE("a schedule that deadlocks is refused with its cycle") {
    const Schedule schedule = parse_schedule("0B0 0F0 0SEND_F0\n1RECV_F0 1F0 1B0 1SEND_B0\n", "");
    const CostTable costs = whole_costs(2, 1, 1);
    const EventProgram program = event_program(schedule, costs, {}, Sends::kBuffered);
    CHECK_THROWS_AS(event_times(schedule, program, {}, Sends::kBuffered), ScheduleError);
  }

  TEST_CASE("the same question has the same answer") {
    const Schedule schedule = lowered("1f1b", 8, 16);
    CostTable costs = random_costs(schedule, 3);
    const NetworkSpec network = one_trunk(schedule, 1e12);
    const EventProgram program = event_program(schedule, costs, network, Sends::kBuffered);
    const EventTimes first = event_times(schedule, program, network, Sends::kBuffered);
    const EventTimes second = event_times(schedule, program, network, Sends::kBuffered);
    CHECK(first.start == second.start);
    CHECK(first.end == second.end);
  }
}

}  // namespace plumb::test
