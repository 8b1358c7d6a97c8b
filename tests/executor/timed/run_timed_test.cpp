#include "executor/timed/run_timed.h"

#include <algorithm>
#include <atomic>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"
#include "tests/executor/timed/milliseconds.h"

namespace plumb::test {
namespace {

/// Returns 1F1B on 2 ranks with operations of 2 ms and hops of 1 ms, and `bytes` a message.
TimedSpec small_timed_spec(std::int64_t bytes = 1) {
  TimedSpec spec{.schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 3})),
                 .costs = chunk_cost_table(2, {.forward = {Seconds{2e-3}},
                                               .input_grad = {Seconds{1e-3}},
                                               .weight_grad = {Seconds{1e-3}},
                                               .hop_latency = Seconds{1e-3}}),
                 .grid = {.pipeline = 2},
                 .steps = 2};
  for (StageCosts& stage : spec.costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = bytes;
  return spec;
}

const Span& span_of(const Timeline& timeline, std::size_t rank, Op op, int microbatch) {
  const std::vector<Span>& spans = timeline.ranks[rank].spans;
  return *std::ranges::find_if(
      spans, [&](const Span& span) { return span.action.op == op && span.action.microbatch == microbatch; });
}

}  // namespace

TEST_CASE("a timed replay never ends before its prediction, and runs every action") {
  const TimedSpec spec = small_timed_spec();
  const Simulation predicted = simulate(spec.schedule, spec.costs);
  const TimedResult result = run_timed(spec);
  REQUIRE(result.timelines.size() == 2);
  for (const Seconds step : result.step_seconds) CHECK(to_sim_time(step) >= predicted.makespan);
  for (std::size_t rank = 0; rank < 2; ++rank)
    CHECK(result.timelines[1].ranks[rank].spans.size() == spec.schedule.ranks[rank].size());
}

TEST_CASE("operations last at least what the table says, longer on a slow rank") {
  TimedSpec spec = small_timed_spec();
  spec.speeds = {1, 0.5};
  const TimedResult result = run_timed(spec);
  const auto lasts = [&](std::size_t rank, Op op) {
    const Span& span = span_of(result.timelines[0], rank, op, 1);
    return span.end - span.start;
  };
  CHECK(lasts(0, Op::kForward) >= ms(2));
  CHECK(lasts(1, Op::kForward) >= ms(4));
  CHECK(lasts(1, Op::kBackward) >= ms(4));
}

TEST_CASE("a message is delivered when its link has let it through") {
  TimedSpec spec = small_timed_spec(40'000);
  spec.costs.default_link.bytes_per_second = 1e7;  // 4 ms a message, and 1 ms of latency
  const TimedResult result = run_timed(spec);
  const Timeline& timeline = result.timelines[0];
  for (int microbatch = 0; microbatch < 3; ++microbatch) {
    const Span& sent = span_of(timeline, 0, Op::kSendActivation, microbatch);
    CHECK(sent.end - sent.start == ms(5));
    CHECK(sent.start >= span_of(timeline, 0, Op::kForward, microbatch).end);
    CHECK(span_of(timeline, 1, Op::kForward, microbatch).start >= sent.end);
  }
  const Simulation predicted = simulate(spec.schedule, spec.costs);
  CHECK(to_sim_time(result.step_seconds[0]) >= predicted.makespan);
}

TEST_CASE("a burst passes at once") {
  TimedSpec spec = small_timed_spec(40'000);
  spec.costs.default_link.bytes_per_second = 1e7;
  spec.burst_bytes = 40'000;
  const Span sent = span_of(run_timed(spec).timelines[0], 0, Op::kSendActivation, 0);
  CHECK(sent.end - sent.start == ms(1));
}

TEST_CASE("replicas sum real gradients in the time that the table gives") {
  TimedSpec spec = small_timed_spec();
  spec.schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 2}), {.data = {.enabled = true}});
  spec.grid.data = 2;
  for (StageCosts& stage : spec.costs.stages)
    stage.segments[static_cast<std::size_t>(Op::kReduceGrad)] = {
        {{.kind = Segment::Kind::kCollective, .seconds = Seconds{10e-3}, .group = Group::kData, .bytes = 400'000}}};
  const TimedResult result = run_timed(spec);
  const std::vector<Span>& spans = result.timelines[0].ranks[0].spans;
  const auto reduction =
      std::ranges::find_if(spans, [](const Span& span) { return span.action.op == Op::kReduceGrad; });
  REQUIRE(reduction != spans.end());
  CHECK(reduction->end - reduction->start >= ms(9.9));
}

TEST_CASE("shrunk bytes over shrunk links take the same time") {
  TimedSpec spec = small_timed_spec(40'000);
  spec.costs.default_link.bytes_per_second = 1e7;
  const CostTable shrunk = shrink_bytes(spec.costs, 100);
  CHECK(shrunk.stages[0].activation_message_bytes == 400);
  CHECK(shrunk.stages[1].gradient_message_bytes == 400);
  CHECK(simulate(spec.schedule, shrunk).makespan == simulate(spec.schedule, spec.costs).makespan);
  CHECK_THROWS_AS(shrink_bytes(spec.costs, 0.5), SpecError);
}

TEST_CASE("bytes that the machine cannot hold are refused before anything runs") {
  TimedSpec spec = small_timed_spec(std::int64_t{1} << 50);
  CHECK_THROWS_WITH_AS(run_timed(spec), doctest::Contains("this machine's"), SpecError);
}

TEST_CASE("what cannot be replayed by the clock is refused") {
  TimedSpec spec = small_timed_spec();
  spec.speeds = {1};
  CHECK_THROWS_WITH_AS(run_timed(spec), "speeds are given for some of the ranks only: give one for each, or none",
                       SpecError);
  spec.speeds = {1, 0};
  CHECK_THROWS_AS(run_timed(spec), InputError);
  spec = small_timed_spec();
  spec.costs.stages.pop_back();
  CHECK_THROWS_AS(run_timed(spec), SpecError);
}

TEST_CASE("a timed replay that is asked to end has the steps that were done") {
  std::atomic<int> asked{0};
  const TimedResult result = run_timed(small_timed_spec(), {.ends = [&] { return asked++ >= 2; }});  // asked by 2 ranks
  CHECK(result.step_seconds.size() == 1);
  CHECK(result.timelines.size() == 1);
  CHECK(run_timed(small_timed_spec(), {.ends = [] { return true; }}).step_seconds.empty());
}

}  // namespace plumb::test
