#include "simulator/steady_state.h"

#include <doctest/doctest.h>

#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

void require_same_sums(const Simulation& a, const Simulation& b) {
  REQUIRE(a.makespan == b.makespan);
  REQUIRE(a.busy == b.busy);
  REQUIRE(a.first_start == b.first_start);
  REQUIRE(a.last_end == b.last_end);
  REQUIRE(a.bubble_ratio == b.bubble_ratio);
  REQUIRE(a.span_bubble_ratio == b.span_bubble_ratio);
  REQUIRE(a.peak_memory_bytes == b.peak_memory_bytes);
  REQUIRE(a.peak_activations == b.peak_activations);
}

}  // namespace

TEST_CASE("a million micro-batches of 1F1B take (m+p-1)(F+B), from their steady state") {
  const Simulation result =
      simulate_repeating(repeating("1f1b", {.ranks = 4, .microbatches = 1'000'000}), whole_costs(4, 1, 2));
  CHECK(result.engine == "steady state");
  CHECK(result.makespan == 3 * 1'000'003 * kSecond);
  CHECK(result.busy == std::vector<SimTime>(4, 3'000'000 * kSecond));
  CHECK(result.peak_activations == std::vector<int>{4, 3, 2, 1});
}

TEST_CASE("a schedule that is hardly longer than its ends is simulated whole") {
  const RepeatingSchedule schedule = repeating("1f1b", {.ranks = 4, .microbatches = 16});
  CHECK(simulate_repeating(schedule, whole_costs(4, 1, 2)).engine == "compiled");
}

TEST_CASE("what does not repeat, or is not shown to, is simulated whole") {
  RepeatingSchedule schedule = repeating("gpipe", {.ranks = 2, .microbatches = 200});
  CHECK(schedule.period == 0);
  const CostTable costs = whole_costs(2, 1, 2);
  CHECK(simulate_repeating(schedule, costs).engine == "compiled");
  schedule.period = 2;  // gpipe grows in two places
  const Simulation result = simulate_repeating(schedule, costs);
  CHECK(result.engine == "compiled");
  CHECK(result.makespan == 3 * 201 * kSecond);
}

TEST_CASE("buckets that are reduced inside the last backward leave the steady state as it is") {
  for (const char* name : {"1f1b", "interleaved", "zb-h1"}) {
    const RepeatingSchedule schedule =
        repeating(name, {.ranks = 4, .microbatches = 400}, {.data = {.enabled = true, .buckets = {3}}});
    const Schedule whole = schedule.lowered(400);
    const CostTable costs = random_costs(whole, 1, 3);
    const Simulation result = simulate_repeating(schedule, costs);
    CHECK(result.engine == "steady state");
    require_same_sums(result, simulate(whole, compile(whole, Sends::kBuffered), costs, false));
  }
}

TEST_SUITE("property") {
  TEST_CASE("the steady state gives the sums of the whole simulation, whatever the schedule and the costs") {
    int steady = 0;
    int all = 0;
    for (const CatalogueEntry& entry : catalogue()) {
      if (entry.name == "zb-auto" || entry.name.starts_with("pipedream")) continue;
      for (const int ranks : {1, 2, 4, 6}) {
        for (const int chunks : {1, 2, 3}) {
          if (chunks > 1 && !entry.takes_chunks) continue;
          for (const int microbatches : {40 * ranks, 57 * ranks + ranks / 2}) {
            for (std::uint64_t seed = 0; seed < 3; ++seed) {
              const RepeatingSchedule schedule = repeating(entry.name, {.ranks = ranks,
                                                                        .microbatches = microbatches,
                                                                        .chunks = chunks,
                                                                        .slices = entry.takes_slices ? 2 : 1});
              Schedule whole;
              try {
                whole = schedule.lowered(microbatches);
              } catch (const InputError&) {  // a constraint of that schedule on p, v, m
                continue;
              }
              const CostTable costs = random_costs(whole, seed + static_cast<std::uint64_t>(ranks));
              for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
                INFO(entry.name, " p=", ranks, " v=", chunks, " m=", microbatches, " seed ", seed);
                const Simulation result = simulate_repeating(schedule, costs, sends);
                require_same_sums(result, simulate(whole, compile(whole, sends), costs, false));
                ++all;
                steady += result.engine == "steady state" ? 1 : 0;
              }
            }
          }
        }
      }
    }
    MESSAGE(steady, " of ", all, " from their steady state");
    CHECK(2 * steady > all);
  }
}

}  // namespace plumb::test
