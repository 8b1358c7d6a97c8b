// Messages that leave by a card with a token bucket (SimulationOptions::burst_bytes).

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/network/simulate_network.h"
#include "simulator/simulate.h"

namespace plumb::test {
namespace {

constexpr SimTime kMs{1'000'000'000};

/// Returns F, I and W of `compute_ms` each, and messages of 10 MB over 1 GB/s, which take 10 ms.
CostTable burst_costs(const Schedule& schedule, double compute_ms) {
  const Seconds compute{compute_ms * 1e-3};
  CostTable costs = chunk_cost_table(static_cast<int>(schedule.stages.size()),
                                     {.forward = {compute}, .input_grad = {compute}, .weight_grad = {compute}});
  for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 10'000'000;
  costs.default_link.bytes_per_second = 1e9;
  return costs;
}

SimTime end_of(const Simulation& simulation, std::size_t rank, Op op, int microbatch) {
  const std::vector<Span>& spans = simulation.timeline.ranks[rank].spans;
  return std::ranges::find_if(spans,
                              [&](const Span& s) { return s.action.op == op && s.action.microbatch == microbatch; })
      ->end;
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("what a burst holds is there at once, what it does not waits for the rate, and idle time fills it") {
    const Schedule schedule = lower(make_schedule("forward-only", {.ranks = 2, .microbatches = 3}));
    const CostTable costs = burst_costs(schedule, 4);
    const Simulation shaped = simulate(schedule, costs, {.burst_bytes = 4'000'000});
    // Ready at 4, 8, 12 ms. The first finds 4 ms worth of tokens; the others find none and queue.
    CHECK(end_of(shaped, 0, Op::kSendActivation, 0) == 10 * kMs);
    CHECK(end_of(shaped, 0, Op::kSendActivation, 1) == 20 * kMs);
    CHECK(end_of(shaped, 0, Op::kSendActivation, 2) == 30 * kMs);
    CHECK(shaped.makespan == 34 * kMs);

    const CostTable slow = burst_costs(schedule, 20);  // 10 ms idle between messages: the bucket is full each time
    const Simulation idle = simulate(schedule, slow, {.burst_bytes = 4'000'000});
    for (int microbatch = 0; microbatch < 3; ++microbatch)
      CHECK(end_of(idle, 0, Op::kSendActivation, microbatch) == (20 * (microbatch + 1) + 6) * kMs);
  }

  TEST_CASE("all messages of a rank leave by one card") {
    // The middle rank's activation and gradient are ready 1 ms apart; without a card each has a link of its own.
    const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 3, .microbatches = 4}));
    const CostTable costs = burst_costs(schedule, 1);
    const SimTime apart = simulate(schedule, costs).makespan;
    const SimTime together = simulate(schedule, costs, {.burst_bytes = 1}).makespan;
    CHECK(together > apart);
    // With nothing to send backward the card makes no difference but for its one byte.
    const Schedule forward = lower(make_schedule("forward-only", {.ranks = 3, .microbatches = 4}));
    const CostTable forward_costs = burst_costs(forward, 1);
    const SimTime difference =
        simulate(forward, forward_costs).makespan - simulate(forward, forward_costs, {.burst_bytes = 1}).makespan;
    CHECK(difference >= SimTime{0});
    CHECK(difference <= SimTime{2000});  // a byte takes a nanosecond, on each of two hops
  }

  TEST_CASE("a burst as large as every message leaves the latency alone") {
    const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 4}));
    CostTable costs = burst_costs(schedule, 50);
    costs.default_link.latency = Seconds{2e-3};
    CostTable unlimited = costs;
    unlimited.default_link.bytes_per_second = 1e18;
    CHECK(simulate(schedule, costs, {.burst_bytes = 10'000'000}).makespan / kMs ==
          simulate(schedule, unlimited).makespan / kMs);
  }

  TEST_CASE("a burst is refused where it is not simulated") {
    const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 2}));
    const CostTable costs = burst_costs(schedule, 1);
    CHECK_THROWS_AS(simulate(schedule, costs, {.burst_bytes = -1}), SpecError);
    CHECK_THROWS_AS(simulate(schedule, costs, NetworkSpec{.speeds = {1, 0.5}}, {.burst_bytes = 1}), SpecError);
  }
}

}  // namespace plumb::test
