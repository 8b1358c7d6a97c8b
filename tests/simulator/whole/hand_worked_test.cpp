// Schedules small enough to be worked out on paper. F = 1 s, B = 2 s unless said otherwise.

#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "simulator/path/sensitivity.h"
#include "tests/simulator/support.h"
#include "traces/idle_causes.h"

namespace plumb::test {
namespace {

const Span& span_of(const Simulation& simulation, std::string_view token) {
  const Action wanted = parse_action(token).value();
  for (const RankTimeline& rank : simulation.timeline.ranks) {
    for (const Span& span : rank.spans) {
      Action action = span.action;
      action.overlaps_next = false;
      if (action == wanted) return span;
    }
  }
  throw std::invalid_argument("no such action: " + std::string(token));
}

double start(const Simulation& simulation, std::string_view token) {
  return to_seconds(span_of(simulation, token).start).count();
}
double end(const Simulation& simulation, std::string_view token) {
  return to_seconds(span_of(simulation, token).end).count();
}

void set_duration(CostTable& costs, Op op, double seconds) {
  for (StageCosts& stage : costs.stages)
    stage.segments[static_cast<std::size_t>(op)] = {{Segment{.seconds = Seconds{seconds}}}};
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("a micro-batch pays the latency of every hop, there and back") {
    const Simulation result = simulate(lower(parse_schedule("0F0 0B0\n1F0 1B0\n2F0 2B0\n")), whole_costs(3, 1, 2, 0.5));
    CHECK(start(result, "1F0") == 1.5);
    CHECK(start(result, "2F0") == 3.0);
    CHECK(start(result, "1B0") == 6.5);  // 2F0 ends at 4, 2B0 at 6
    CHECK(start(result, "0B0") == 9.0);
    CHECK(result.makespan == 11 * kSecond);
  }

  TEST_CASE("in 1F1B a hop's latency is paid once a round: the second backward waits for its forward's way down") {
    // rank 1: 1F0 [1.5, 2.5] 1B0 [2.5, 4.5] 1F1 [4.5, 5.5] 1B1 [5.5, 7.5]; rank 0 was ready with 0F1 at 2.
    const Simulation result =
        simulate(lower(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n")), whole_costs(2, 1, 2, 0.5));
    CHECK(start(result, "1F1") == 4.5);
    CHECK(start(result, "0B0") == 5.0);
    CHECK(start(result, "0B1") == 8.0);
    CHECK(result.makespan == 10 * kSecond);
  }

  TEST_CASE("an overlapped pair hides the exchanges of each action behind the compute of the other") {
    // By itself F lasts 4 + 2 s, B 8 + 6 s; the pair max(4, 6) + max(8, 2) s.
    CostTable costs = whole_costs(2, 4, 8);
    for (StageCosts& stage : costs.stages) {
      const auto add = [&stage](Op op, double seconds) {
        stage.segments[static_cast<std::size_t>(op)].front().push_back(
            {.kind = Segment::Kind::kCollective, .seconds = Seconds{seconds}, .group = Group::kExpert});
      };
      add(Op::kForward, 2);
      add(Op::kBackward, 6);
    }
    const Schedule schedule = lower(parse_schedule("0F0 1F0 0F1&1B0 1F1 1B1 0B0 0B1\n"));
    const Simulation result = simulate(schedule, costs);
    CHECK(start(result, "0F1") == 12.0);
    CHECK(end(result, "0F1") == 26.0);
    CHECK(end(result, "1B0") == 26.0);
    CHECK(result.makespan == 74 * kSecond);
    CHECK(result.busy[0] == 74 * kSecond);
    const Sensitivity sensitivity = sensitivity_of(schedule, costs, result.critical_path);
    CHECK(sensitivity.group_collectives == Seconds{30});  // the pair lasts 6 s of B's exchange and 8 s of its compute
    CHECK(sensitivity.compute_by_stage == std::vector{Seconds{20}, Seconds{24}});
  }

  TEST_CASE("a channel takes one transfer after the other, and latency delays delivery only") {
    CostTable costs = whole_costs(2, 1, 2);
    costs.default_link = {.latency = Seconds{0.5}, .bytes_per_second = 1};
    costs.stages[0].activation_message_bytes = 3;
    const Simulation result = simulate(lower(parse_schedule("0F0 0F1\n1F0 1F1\n")), costs);
    CHECK(start(result, "0SEND_F0") == 1.0);
    CHECK(end(result, "0SEND_F0") == 4.5);
    CHECK(start(result, "0SEND_F1") == 4.0);  // the last byte of the first leaves at 4
    CHECK(start(result, "1F1") == 7.5);
  }

  TEST_CASE("activations and gradients between the same ranks do not share a channel") {
    CostTable costs = whole_costs(4, 1, 1);
    costs.default_link.bytes_per_second = 1;
    for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 10;
    // Stages 0, 2 on rank 0 and 1, 3 on rank 1: rank 0 sends 0F0's output and 2B0's input gradient to rank 1.
    const Simulation result =
        simulate(lower(make_schedule("interleaved", {.ranks = 2, .microbatches = 2, .chunks = 2})), costs);
    const Span& gradient = span_of(result, "2SEND_B0");
    const double made = end(result, "2B0");
    CHECK(to_seconds(gradient.start).count() == made);
  }

  TEST_CASE("a rendezvous waits until the receive is issued, a buffered send does not") {
    const Schedule schedule = parse_schedule(
        "microbatches: 2\nstages: 0/0/0 1/1/0 1/0/1\n"  // stage 2 is a pipeline of its own that keeps rank 1 busy
        "0F0 0SEND_F0\n"
        "2F1 1RECV_F0 1F0\n");
    CostTable costs = whole_costs(3, 1, 2, 0.5);
    costs.stages[2].segments[0] = {{Segment{.seconds = Seconds{4}}}};
    CHECK(start(simulate(schedule, costs), "1F0") == 4.0);
    const Simulation rendezvous = simulate(schedule, costs, {.sends = Sends::kRendezvous});
    CHECK(start(rendezvous, "0SEND_F0") == 4.0);
    CHECK(start(rendezvous, "1F0") == 4.5);
    CHECK(rendezvous.critical_path.back().reason == Reason::kMessage);
    CHECK(rendezvous.critical_path[rendezvous.critical_path.size() - 2].reason == Reason::kRendezvous);
  }

  TEST_CASE("an overlapped pair starts when both inputs are there, lasts the sum and delivers both at its end") {
    const Simulation result =
        simulate(lower(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0&1F1 1B1\n")), whole_costs(2, 1, 2, 0.5));
    CHECK(start(result, "1B0") == 2.5);
    CHECK(start(result, "1F1") == 2.5);
    CHECK(end(result, "1B0") == 5.5);
    CHECK(start(result, "0B0") == 6.0);
    CHECK(result.busy[1] == 6 * kSecond);  // the pair counts once
  }

  TEST_CASE("slices go forward in order and back in reverse") {
    const Simulation result =
        simulate(lower(parse_schedule("0F0 0F0/1 0B0/1 0B0\n1F0 1F0/1 1B0/1 1B0\n")), whole_costs(2, 1, 2));
    CHECK(start(result, "1F0/1") == 2.0);
    CHECK(start(result, "1B0/1") == 3.0);
    CHECK(start(result, "0B0/1") == 5.0);
    CHECK(start(result, "0B0") == 7.0);  // 1B0 ends at 7
    CHECK(result.makespan == 9 * kSecond);
  }

  TEST_CASE("parameters are gathered beside the compute, one UNSHARD after the other, and again after a RESHARD") {
    const Schedule schedule =
        parse_schedule("microbatches: 2\n0UNSHARD 1UNSHARD 0F0 0RESHARD 0UNSHARD 1F1 0B0 1B1\n", "one rank");
    Schedule two_lanes = schedule;
    two_lanes.stages = {{.rank = 0, .model_part = 0, .lane = 0}, {.rank = 0, .model_part = 0, .lane = 1}};
    CostTable costs = whole_costs(2, 1, 2);
    set_duration(costs, Op::kUnshard, 3);
    const Simulation result = simulate(two_lanes, costs);
    CHECK(start(result, "0F0") == 3.0);
    CHECK(start(result, "1UNSHARD") == 3.0);
    CHECK(end(result, "0RESHARD") == 4.0);
    CHECK(start(result, "1F1") == 6.0);
    CHECK(start(result, "0B0") == 9.0);  // the second 0UNSHARD: [6, 9] on the channel
  }

  TEST_CASE("the optimizer waits for the reduction of its own stage only") {
    const Schedule schedule =
        parse_schedule("0F0 1F0 1B0 1REDUCE_GRAD 0B0 0REDUCE_GRAD 1OPTIMIZER_STEP 0OPTIMIZER_STEP\n");
    CostTable costs = whole_costs(2, 1, 2);
    set_duration(costs, Op::kReduceGrad, 4);
    set_duration(costs, Op::kOptimizerStep, 1);
    const Simulation result = simulate(schedule, costs);
    CHECK(start(result, "1OPTIMIZER_STEP") == 8.0);   // reduced [4, 8]
    CHECK(start(result, "0OPTIMIZER_STEP") == 12.0);  // reduced [8, 12]: the channel is in order
    CHECK(result.critical_path.back().reason == Reason::kReduction);
    CHECK(result.busy[0] == 8 * kSecond);
  }

  TEST_CASE("copies reduce together, when the last of them is there, and all step behind that") {
    Schedule schedule =
        parse_schedule("microbatches: 2\n0F0 0B0 0REDUCE_GRAD 0OPTIMIZER_STEP\n1F1 1B1 1REDUCE_GRAD 1OPTIMIZER_STEP\n");
    schedule.stages = {{.rank = 0, .model_part = 0, .lane = 0}, {.rank = 1, .model_part = 0, .lane = 1}};
    CostTable costs = whole_costs(2, 1, 2);
    costs.stages[1] = whole_costs(1, 2, 5).stages[0];
    set_duration(costs, Op::kReduceGrad, 4);
    set_duration(costs, Op::kOptimizerStep, 1);
    const Simulation result = simulate(schedule, costs);
    for (const char* name : {"0REDUCE_GRAD", "1REDUCE_GRAD"}) {
      CHECK(start(result, name) == 7.0);  // rank 1's backward ends at 7, rank 0's has ended at 3
      CHECK(end(result, name) == 11.0);
    }
    CHECK(start(result, "0OPTIMIZER_STEP") == 11.0);
    CHECK(result.critical_path[2].action.op == Op::kReduceGrad);
    CHECK(result.makespan == 12 * kSecond);
  }

  TEST_CASE("ranks that reduce copies in opposite orders deadlock, with or without optimizer steps") {
    for (const bool steps : {false, true}) {
      Schedule crossed = parse_schedule(
          "0F0 3F1 3B1 0B0 0REDUCE_GRAD 3REDUCE_GRAD\n2F1 1F0 1B0 2B1 1REDUCE_GRAD 2REDUCE_GRAD\n", "crossed");
      crossed.stages = bidirectional_placement(2);
      crossed.microbatches = 2;
      const Schedule lowered = add_messages(steps ? add_optimizer_steps(crossed) : crossed);
      CHECK_THROWS_WITH_AS(simulate(lowered, whole_costs(4, 1, 2), {.validate = false}),
                           doctest::Contains("3REDUCE_GRAD"), ScheduleError);
    }
  }

  TEST_CASE("activations leave behind their forward, on a channel of their own, and hold up their backward alone") {
    CostTable costs = whole_costs(1, 1, 2);
    set_duration(costs, Op::kOffload, 3);
    set_duration(costs, Op::kReload, 2);
    const Simulation result =
        simulate(parse_schedule("0F0 0OFFLOAD0 0F1 0OFFLOAD1 0F2 0RELOAD1 0RELOAD0 0B2 0B1 0B0\n"), costs);
    CHECK(start(result, "0OFFLOAD0") == 1.0);
    CHECK(start(result, "0OFFLOAD1") == 4.0);  // the channel is in order
    CHECK(start(result, "0F2") == 2.0);        // and holds up no compute
    CHECK(start(result, "0RELOAD1") == 7.0);   // what has not left cannot come back
    CHECK(start(result, "0RELOAD0") == 9.0);
    CHECK(start(result, "0B2") == 3.0);
    CHECK(start(result, "0B1") == 9.0);
    CHECK(start(result, "0B0") == 11.0);
    CHECK(result.critical_path.back().reason == Reason::kIssue);  // 0B1 ends at 11, and so does 0RELOAD0
    CHECK(result.critical_path[result.critical_path.size() - 2].reason == Reason::kMoved);
  }

  TEST_CASE("both bubbles are those of docs/design.md: the one counts waiting at the ends, the other does not") {
    // Rank 0 works 6 s of 9, rank 1 of its span [1, 7] all of it.
    const Simulation result =
        simulate(lower(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n")), whole_costs(2, 1, 2));
    CHECK(result.makespan == 9 * kSecond);
    CHECK(result.bubble_ratio == doctest::Approx(1 - 12.0 / 18.0));
    CHECK(result.span_bubble_ratio == doctest::Approx(1 - 6.0 / 9.0));
  }

  TEST_CASE("an action without cost, an empty rank and an empty schedule take no time") {
    CHECK(simulate(parse_schedule("0F0 0B0\n"), whole_costs(1, 0, 0)).makespan == SimTime{0});
    const Simulation nothing = simulate({}, {}, {.validate = false});
    CHECK(nothing.makespan == SimTime{0});
    CHECK(nothing.critical_path.empty());
    CHECK(nothing.bubble_ratio == 0);
  }

  TEST_CASE("a table without a row for each stage is refused") {
    CHECK_THROWS_WITH_AS(simulate(lowered("1f1b", 4, 4), whole_costs(3, 1, 2)),
                         "the cost table has 3 stages, the schedule 4: give a row for each", SpecError);
  }

  TEST_CASE("a link without bandwidth is refused") {
    CostTable costs = whole_costs(2, 1, 2);
    costs.links[{1, 0}] = {.bytes_per_second = 0};
    CHECK_THROWS_WITH_AS(simulate(lowered("1f1b", 2, 4), costs),
                         "the link from rank 1 to rank 0 has a bandwidth of 0 bytes/s: give a positive one", SpecError);
  }

  TEST_CASE("a schedule over several ranks that is not lowered is refused") {
    CHECK_THROWS_WITH_AS(simulate(parse_schedule("0F0 0B0\n1F0 1B0\n"), whole_costs(2, 1, 2)),
                         "0B0 waits for 1SEND_B0, which rank 1 does not list: lower the schedule first", ScheduleError);
  }

  TEST_CASE("a deadlock is named action by action") {
    const Schedule crossed = lower(parse_schedule("0F0 0B0 0F1 0B1\n1F1 1F0 1B0 1B1\n"));
    std::string message;
    try {
      simulate(crossed, whole_costs(2, 1, 2));
    } catch (const ScheduleError& error) {
      message = error.what();
    }
    CAPTURE(message);
    CHECK(message.starts_with("the schedule deadlocks: rank "));
    for (const char* step : {"1F1", "0F1", "0B0", "1B0", "1F0"}) CHECK(message.find(step) != std::string::npos);
  }
}

TEST_CASE("blocking sends are a check, not a simulation") {
  CHECK_THROWS_AS(simulate(lowered("1f1b", 2, 2), whole_costs(2, 1, 2), {.sends = Sends::kBlocking}), ScheduleError);
}

TEST_CASE("buckets are reduced inside the last backward, and what is left over makes the optimizer wait") {
  // F 1 s, B 4 s from 1 s on; its buckets are complete at 2 s and 4 s. Reductions of 2.5 s: the second waits for the
  // channel up to 4.5 s and ends at 7 s, 2 s behind the backward. Behind the backward both would end at 10 s.
  CostTable costs = whole_costs(1, 1, 4);
  costs.stages[0].bucket_offsets = {Seconds{1}, Seconds{3}};
  costs.stages[0].segments[static_cast<std::size_t>(Op::kReduceGrad)] = {{Segment{.seconds = Seconds{2.5}}}};
  const Schedule inside = parse_schedule("0F0 0REDUCE_GRAD 0REDUCE_GRAD/1 0B0 0OPTIMIZER_STEP");
  const Simulation result = simulate(inside, costs);
  CHECK(result.makespan == 7 * kSecond);
  CHECK(simulate(parse_schedule("0F0 0B0 0REDUCE_GRAD 0REDUCE_GRAD/1 0OPTIMIZER_STEP"), costs).makespan ==
        10 * kSecond);
  std::string path;
  for (const CriticalStep& step : result.critical_path) path += to_text(step.action) + " ";
  CHECK(path == "0F0 0B0 0REDUCE_GRAD 0REDUCE_GRAD/1 ");  // the first of those that end last
  const IdleByCause idle = idle_by_cause(result.timeline)[0];
  CHECK(idle[static_cast<std::size_t>(IdleCause::kReduction)] == 2 * kSecond);
  // F, and B up to its first bucket, make 2 s of the 7, the reductions the rest.
  const Sensitivity grows = sensitivity_of(inside, costs, result.critical_path);
  CHECK(grows.compute_by_stage[0] == Seconds{2});
  CHECK(grows.reduction == Seconds{5});
  // Fast reductions are hidden but for the last bucket's, where that is complete at the end of B.
  costs.stages[0].segments[static_cast<std::size_t>(Op::kReduceGrad)] = {{Segment{.seconds = Seconds{0.5}}}};
  CHECK(simulate(inside, costs).makespan == 5 * kSecond);
  costs.stages[0].bucket_offsets = {};
  CHECK(simulate(inside, costs).makespan == 6 * kSecond);
}

}  // namespace plumb::test
