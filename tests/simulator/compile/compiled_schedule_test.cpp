#include "simulator/compile/compiled_schedule.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "simulator/engine/action_costs.h"
#include "simulator/engine/engine.h"
#include "tests/simulator/support.h"

namespace plumb::test {

TEST_CASE("a compute action and the message behind it are one step") {
  // 2 ranks, 3 micro-batches: 6 F, 6 B and the 2 OPTIMIZER_STEPs; the 6 messages take no step of their own.
  const Schedule schedule = lowered("1f1b", 2, 3);
  CHECK(action_count(schedule) == 14 + 2 * 6);
  CHECK(compile(schedule, Sends::kBuffered).steps.size() == 14);
}

TEST_CASE("a pair takes the later of its two messages") {
  // Rank 1's pair needs 1F1 from rank 0 (there at 2 + c) and the gradient of its 1B0 (stage 2, rank 0): with F = B = 1
  // and free links 0F0 0F1 end at 1 and 2, 1F0 at 2, 2F0 runs 2..3 and 2B0 3..4, so that the pair starts at 4.
  const Schedule schedule =
      lower(parse_schedule("0F0 0F1 2F0 2B0 2F1 2B1 0B0 0B1\n"
                           "1F0 1F1&1B0 1B1\n"));
  const CostTable costs = whole_costs(3, 1, 1);
  const Simulation result = simulate(schedule, compile(schedule, Sends::kBuffered), costs, true);
  for (const Span& span : result.timeline.ranks[1].spans) {
    if (span.action.op == Op::kForward && span.action.microbatch == 1) CHECK(span.start == 4 * kSecond);
  }
}

TEST_CASE("registers are reused: their number does not grow with the micro-batches") {
  for (const char* name : {"1f1b", "zb-h1", "gpipe", "interleaved"}) {
    INFO(name);
    CHECK(compile(lowered(name, 8, 400), Sends::kBuffered).registers ==
          compile(lowered(name, 8, 40), Sends::kBuffered).registers);
  }
}

TEST_CASE("one compiled schedule serves every cost table") {
  for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
    const Schedule schedule = lowered("interleaved", 4, 8, 2);
    const CompiledSchedule compiled = compile(schedule, sends);
    StepTimes reused;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const CostTable costs = random_costs(schedule, seed);
      const Simulation fresh = simulate(schedule, costs, {.sends = sends});
      const Simulation again = simulate(schedule, compiled, costs, false);
      CHECK(again.makespan == fresh.makespan);
      CHECK(again.busy == fresh.busy);
      CHECK(again.first_start == fresh.first_start);
      CHECK(again.last_end == fresh.last_end);
      reused = step_times(compiled, step_costs(compiled, convert_costs(schedule, costs)), std::move(reused));
      CHECK(*std::ranges::max_element(reused.registers) == fresh.makespan);
    }
  }
}

TEST_CASE("a deadlock is named action by action, also where nothing was validated") {
  const Schedule crossed = lower(parse_schedule("0F0 0B0 0F1 0B1\n1F1 1F0 1B1 1B0\n"));
  for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
    CHECK_THROWS_WITH_AS(compile(crossed, sends), doctest::Contains("the schedule deadlocks: rank "), ScheduleError);
  }
}

TEST_CASE("an action ahead of what it needs on its own rank is a deadlock") {
  for (const char* text :
       {"0B0 0F0\n", "0F0 0W0 0I0\n", "0F0/1 0F0 0B0/1 0B0\n", "0F0 0F0/1 0B0 0B0/1\n", "1F0 0F0\n"}) {
    INFO(text);
    CHECK_THROWS_WITH_AS(compile(parse_schedule(text), Sends::kBuffered), doctest::Contains("waits for rank 0"),
                         ScheduleError);
  }
}

TEST_CASE("a message that nobody lists is named") {
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  CHECK_THROWS_WITH_AS(compile(order, Sends::kBuffered),
                       "0B0 waits for 1SEND_B0, which rank 1 does not list: lower the schedule first", ScheduleError);
}

TEST_CASE("an action on a rank that does not own its stage is refused") {
  Schedule schedule = lowered("1f1b", 2, 2);
  std::swap(schedule.ranks[0], schedule.ranks[1]);
  CHECK_THROWS_AS(compile(schedule, Sends::kBuffered), ScheduleError);
}

}  // namespace plumb::test
