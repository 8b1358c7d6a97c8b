#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "tests/traces/support.h"
#include "traces/chain.h"
#include "traces/compare/compare.h"

namespace plumb::test {
namespace {

/// Returns 1F1B on two ranks, as if measured: stage 1's backward takes `backward_s`, a hop `hop_s`.
Timeline step(double backward_s, double hop_s = 0.5) {
  const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
  Timeline timeline =
      simulate(schedule,
               chunk_cost_table(2, {.backward = {Seconds{2}, Seconds{backward_s}}, .hop_latency = Seconds{hop_s}}))
          .timeline;
  timeline.source = Timeline::Source::kMeasured;
  return timeline;
}

SimTime sum_of_differences(const Comparison& comparison) {
  SimTime sum{0};
  for (const ErrorCause& cause : comparison.causes) sum += cause.time.measured - cause.time.predicted;
  return sum;
}

const ErrorCause* find(const Comparison& comparison, ErrorCause::Kind kind, int stage = -1) {
  for (const ErrorCause& cause : comparison.causes) {
    if (cause.kind == kind && cause.stage == stage) return &cause;
  }
  return nullptr;
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("a timeline compared with itself has no error") {
    const Comparison comparison = compare(step(2), {step(2)});
    CHECK(error_ratio(comparison.step) == 0);
    CHECK(sum_of_differences(comparison) == SimTime{0});
    for (const OpComparison& op : comparison.ops) CHECK(error_ratio(op.mean) == 0);
  }

  TEST_CASE("the median is taken of each operation and of the step, and outliers do not count") {
    const Comparison comparison = compare(step(2), {step(9), step(2.5), step(2.5), step(1), step(3)});
    CHECK(comparison.steps == 5);
    CHECK(comparison.step.measured == compare(step(2), {step(2.5)}).step.measured);
    CHECK(comparison.slowest_step > comparison.step.measured);
    for (const OpComparison& op : comparison.ops) {
      if (op.op != Op::kBackward || op.stage != 1) continue;
      CHECK(op.count == 4);
      CHECK(op.mean.predicted == 2 * kSecond);
      CHECK(op.mean.measured == SimTime{2'500'000'000'000});
      CHECK(error_ratio(op.mean) == doctest::Approx(-0.2));
    }
  }

  TEST_CASE("the causes add up to the step's error, and the slow operation is the first of them") {
    const Comparison comparison = compare(step(2), {step(2.5)});
    CHECK(sum_of_differences(comparison) == comparison.step.measured - comparison.step.predicted);
    CHECK(comparison.causes.front().kind == ErrorCause::Kind::kOperation);
    CHECK(comparison.causes.front().op == Op::kBackward);
    CHECK(comparison.causes.front().stage == 1);
  }

  TEST_CASE("slow links are blamed on transfers, and time lost between actions on neither") {
    const Comparison slow_link = compare(step(2, 0.5), {step(2, 0.75)});
    CHECK(slow_link.causes.front().kind == ErrorCause::Kind::kTransfer);
    CHECK(sum_of_differences(slow_link) == slow_link.step.measured - slow_link.step.predicted);

    Timeline late = step(2);
    for (RankTimeline& rank : late.ranks) {  // everything from the second forward on a second later
      for (Span& span : rank.spans) {
        if (span.start == SimTime{0} && span.action.microbatch == 0) continue;
        span.start += kSecond;
        span.end += kSecond;
      }
    }
    const Comparison overhead = compare(step(2), {late});
    REQUIRE(find(overhead, ErrorCause::Kind::kOverhead) != nullptr);
    CHECK(sum_of_differences(overhead) == overhead.step.measured - overhead.step.predicted);
    // Rank 0 had its second forward's tokens all the time; rank 1 waited for the message.
    CHECK(overhead.ranks[0].overhead == ComparedTime{.predicted = SimTime{0}, .measured = kSecond});
    CHECK(overhead.ranks[1].overhead == ComparedTime{});
  }

  TEST_CASE("an action that waits for nothing and starts late is overhead, whatever starts before it elsewhere") {
    Timeline late = step(2);  // rank 1 posts its receive at 0; rank 0 begins half a second later
    for (RankTimeline& rank : late.ranks) {
      for (Span& span : rank.spans) {
        if (span.action.op == Op::kRecvActivation && span.start == SimTime{0}) continue;
        span.start += kSecond / 2;
        span.end += kSecond / 2;
      }
    }
    const Comparison comparison = compare(step(2), {late});
    CHECK(sum_of_differences(comparison) == comparison.step.measured - comparison.step.predicted);
    const ErrorCause* overhead = find(comparison, ErrorCause::Kind::kOverhead);
    REQUIRE(overhead != nullptr);
    CHECK(overhead->time.measured == kSecond / 2);
  }

  TEST_CASE("a measurement without messages is compared all the same: their time is waiting there") {
    Timeline measured = step(2);
    for (RankTimeline& rank : measured.ranks)
      std::erase_if(rank.spans, [](const Span& span) { return is_message(span.action.op); });
    const Comparison comparison = compare(step(2), {measured});
    CHECK(sum_of_differences(comparison) == comparison.step.measured - comparison.step.predicted);
  }

  TEST_CASE("timelines of different schedules are refused with the action that only one of them runs") {
    const Timeline other = predicted_timeline("1f1b", 2, 5);
    CHECK_THROWS_WITH_AS(compare(step(2), {other}),
                         "rank 0: only the second timeline runs 0F4; compare timelines of the same schedule",
                         InputError);
    CHECK_THROWS_AS(compare(step(2), {predicted_timeline("1f1b", 3, 4)}), InputError);
    CHECK_THROWS_AS(compare(step(2), {}), InputError);
  }

  TEST_CASE("the latest chain of a predicted timeline with free channels is its critical path") {
    for (const char* name : {"gpipe", "1f1b", "naive"}) {
      const Schedule schedule = lower(make_schedule(name, {.ranks = 3, .microbatches = 5}));
      const Simulation result = simulate(schedule, chunk_cost_table(3, {.hop_latency = Seconds{0.25}}));
      const std::vector<ChainLink> chain = latest_chain(result.timeline);
      SimTime at{0};
      for (const ChainLink& link : chain) {
        CHECK(result.timeline.ranks[link.rank].spans[link.span].start == at);
        at = result.timeline.ranks[link.rank].spans[link.span].end;
      }
      CHECK(at == result.makespan);
    }
  }

  TEST_CASE("an overlapped pair is one link of the chain") {
    const Schedule schedule = lower(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0&1F1 1B1\n"));
    const Timeline timeline = simulate(schedule, chunk_cost_table(2, {})).timeline;
    const Comparison comparison = compare(timeline, {timeline});
    CHECK(sum_of_differences(comparison) == SimTime{0});
  }
}

}  // namespace plumb::test
