#include "traces/idle_causes.h"

#include <numeric>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "tests/traces/support.h"
#include "traces/statistics.h"

namespace plumb::test {
namespace {

SimTime of(const IdleByCause& idle, IdleCause cause) {
  return idle[static_cast<std::size_t>(cause)];
}

SimTime total(const IdleByCause& idle) {
  return std::accumulate(idle.begin(), idle.end(), SimTime{0});
}

}  // namespace

TEST_CASE("1F1B with free links idles while it fills and drains, and between for gradients") {
  // p=3, m=4, F=1, B=2: rank 0 waits for its first gradient from 3 to 7 (F F B B on the way); rank 2 never waits
  // inside.
  const std::vector<IdleByCause> ranks = idle_by_cause(predicted_timeline("1f1b", 3, 4));
  CHECK(of(ranks[2], IdleCause::kWarmUp) == 2 * kSecond);
  CHECK(of(ranks[2], IdleCause::kDrain) == 4 * kSecond);
  CHECK(total(ranks[2]) == 6 * kSecond);
  CHECK(of(ranks[0], IdleCause::kWarmUp) == SimTime{0});
  CHECK(of(ranks[0], IdleCause::kDrain) == SimTime{0});
  // From 3 to 7 a forward might run if there were room. None is left from 11 to 12 and from 14 to 15.
  CHECK(of(ranks[0], IdleCause::kMemoryLimit) == 4 * kSecond);
  CHECK(of(ranks[0], IdleCause::kGradient) == 2 * kSecond);
  // GPipe has run all its forwards before it waits.
  for (const IdleByCause& rank : idle_by_cause(predicted_timeline("gpipe", 3, 4)))
    CHECK(of(rank, IdleCause::kMemoryLimit) == SimTime{0});
}

TEST_CASE("a message's latency is its way, and a full channel is the link's doing") {
  const Schedule schedule = lower(parse_schedule("0F0 0F1\n1F0 1F1"));
  CostTable costs = chunk_cost_table(2, {});
  costs.stages[0].activation_message_bytes = 4;
  costs.default_link = {.latency = Seconds{0.5}, .bytes_per_second = 1};  // 4 s a message
  const std::vector<IdleByCause> ranks = idle_by_cause(simulate(schedule, costs).timeline);
  // Rank 1: F0 at 1 + 4 + 0.5 = 5.5 to 6.5. F1 is made at 2, leaves at 5, arrives at 9.5.
  CHECK(of(ranks[1], IdleCause::kWarmUp) == 11 * kSecond / 2);
  CHECK(of(ranks[1], IdleCause::kTransfer) == 3 * kSecond);
  CHECK(of(ranks[1], IdleCause::kLink) == SimTime{0});  // it left before the rank began to wait
  CHECK(total(ranks[1]) == 17 * kSecond / 2);
  // Forwards of rank 1 that take nothing leave all the waiting to see.
  costs.stages[0].activation_message_bytes = 1;
  costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)] = {{{.seconds = Seconds{0.25}}}};
  costs.stages[1].segments[static_cast<std::size_t>(Op::kForward)] = {};
  costs.default_link = {.latency = Seconds{0}, .bytes_per_second = 1};
  const Schedule three = lower(parse_schedule("0F0 0F1 0F2\n1F0 1F1 1F2"));
  const std::vector<IdleByCause> busy_link = idle_by_cause(simulate(three, costs).timeline);
  // Made at 0.25, 0.5, 0.75; on the way 0.25-1.25, 1.25-2.25, 2.25-3.25; rank 1 computes nothing in between.
  CHECK(of(busy_link[1], IdleCause::kTransfer) == 2 * kSecond);
  CHECK(of(busy_link[1], IdleCause::kWarmUp) == 5 * kSecond / 4);
}

TEST_CASE("a rank with less work than the busiest waits for that in any order") {
  const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 6}));
  const CostTable costs =
      chunk_cost_table(2, {.forward = {Seconds{1}, Seconds{2}}, .backward = {Seconds{2}, Seconds{4}}});
  const std::vector<IdleByCause> ranks = idle_by_cause(simulate(schedule, costs).timeline);
  CHECK(of(ranks[0], IdleCause::kImbalance) == 6 * 3 * kSecond);  // it works 18 s, the other 36 s
  CHECK(of(ranks[1], IdleCause::kImbalance) == SimTime{0});
}

TEST_CASE("for every schedule, busy and idle by cause add up to the makespan, and nothing is left unexplained") {
  for (const CatalogueEntry& entry : catalogue()) {
    for (const int m : {4, 8, 11}) {
      for (const double hop : {0.0, 0.3}) {
        CAPTURE(entry.name);
        Schedule schedule;
        try {
          schedule = make_schedule(entry.name, {.ranks = 4, .microbatches = m, .chunks = entry.takes_chunks ? 2 : 1});
        } catch (const ScheduleError&) {
          continue;  // breaks a constraint that the catalogue states
        }
        const int stages = static_cast<int>(schedule.stages.size());
        const Timeline timeline =
            simulate(lower(schedule), chunk_cost_table(stages, {.hop_latency = Seconds{hop}})).timeline;
        const Statistics statistics = statistics_of(timeline);
        const std::vector<IdleByCause> ranks = idle_by_cause(timeline);
        for (std::size_t r = 0; r < ranks.size(); ++r) {
          CHECK(statistics.ranks[r].busy + total(ranks[r]) == statistics.makespan);
          CHECK(of(ranks[r], IdleCause::kOverhead) == SimTime{0});
        }
      }
    }
  }
}

TEST_CASE("what a reduction that starts inside the last backward leaves over is waiting for reductions") {
  // Each of 1F1B's ranks reduces two buckets of 2 s, complete after 1 s and 2 s of its last backward of 2 s: they end 3
  // s behind it, and the optimizer waits.
  const Schedule schedule =
      lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}), {.data = {.enabled = true, .buckets = {2}}});
  CostTable costs = chunk_cost_table(4, {.reduce_grad = {Seconds{2}}});
  for (StageCosts& stage : costs.stages) stage.bucket_offsets = {Seconds{1}, Seconds{2}};
  const Timeline timeline = simulate(schedule, costs).timeline;
  const Statistics statistics = statistics_of(timeline);
  const std::vector<IdleByCause> ranks = idle_by_cause(timeline);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    CHECK(statistics.ranks[r].busy + total(ranks[r]) == statistics.makespan);
    CHECK(of(ranks[r], IdleCause::kReduction) == 3 * kSecond);
    CHECK(of(ranks[r], IdleCause::kOverhead) == SimTime{0});
  }
}

TEST_CASE("a timeline without spans has no idle time") {
  CHECK(idle_by_cause(Timeline{}).empty());
}

}  // namespace plumb::test
