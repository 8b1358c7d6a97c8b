#include "simulator/memory/memory_holders.h"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "simulator/memory/memory.h"
#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

/// Bytes that differ for everything, so that nothing can stand for anything else.
CostTable with_all_kinds(CostTable costs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto bytes = [&random] { return static_cast<std::int64_t>(1 + random() % 100); };
  for (StageCosts& stage : costs.stages) {
    stage.memory = {.parameter_bytes = bytes(),
                    .gradient_bytes = bytes(),
                    .optimizer_bytes = bytes(),
                    .forward_bytes = 100 + bytes(),
                    .recompute_bytes = bytes(),
                    .released_at_input_grad_bytes = bytes(),
                    .forward_workspace_bytes = bytes(),
                    .backward_workspace_bytes = bytes(),
                    .unsharded_bytes = bytes()};
  }
  return costs;
}

/// Returns schedules with everything that changes what a rank holds: plain, recomputed, offloaded and sharded ones.
std::vector<Schedule> memory_schedules() {
  std::vector<Schedule> schedules = all_lowered(4, 6, 1);
  for (const char* name : {"1f1b", "zb-h1", "interleaved"}) {
    const Schedule order = make_schedule(name, {.ranks = 4, .microbatches = 8});
    schedules.push_back(lower(order, {.checkpoint = Checkpoint::kAlways}));
    schedules.push_back(lower(order, {.checkpoint = Checkpoint::kExceptLast, .offload = 2}));
    schedules.push_back(
        lower(order, {.data = {.enabled = true, .zero = 3, .sharding = {.gathered_stages = 1, .prefetch = true}}}));
  }
  return schedules;
}

std::int64_t bytes_at(const std::vector<MemorySample>& samples, SimTime time) {
  const auto after = std::ranges::upper_bound(samples, time, {}, &MemorySample::time);
  return after == samples.begin() ? 0 : std::prev(after)->bytes;
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("a rank's peak has its moment, the action that runs, and what each stage holds of each kind") {
    const Schedule schedule = lower(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"));
    CostTable costs = whole_costs(2, 1, 2);
    for (StageCosts& stage : costs.stages) {
      stage.memory = {.parameter_bytes = 100,
                      .gradient_bytes = 200,
                      .optimizer_bytes = 700,
                      .forward_bytes = 10,
                      .recompute_bytes = 5,
                      .forward_workspace_bytes = 1,
                      .backward_workspace_bytes = 3};
    }
    const auto peaks = memory_peaks(schedule, costs, simulate(schedule, costs).timeline);
    // rank 0: F0 [0,1] F1 [1,2] B0 [4,6] B1 [7,9]: both activations, rebuilt tensors and workspace at B0's start
    REQUIRE(peaks.size() == 2);
    CHECK(peaks[0].time == 4 * kSecond);
    CHECK(peaks[0].bytes == 1000 + 20 + 5 + 3);
    REQUIRE(peaks[0].running);
    CHECK(to_text(*peaks[0].running) == "0B0");
    REQUIRE(peaks[0].holders.size() == 6);
    CHECK(peaks[0].holders[0].kind == MemoryKind::kOptimizer);
    CHECK(peaks[0].holders[3].kind == MemoryKind::kActivations);
    CHECK(peaks[0].holders[3].bytes == 20);
    CHECK(peaks[0].holders[3].microbatches == std::vector<int>{0, 1});
    CHECK(peaks[0].holders[4].kind == MemoryKind::kRecompute);
    CHECK(peaks[0].holders[4].microbatches == std::vector<int>{0});
    CHECK(bytes_by_kind(peaks[0]) == BytesByKind{100, 200, 700, 0, 0, 20, 5, 3});
    // rank 1: F0 [1,2] B0 [2,4]: one activation at a time
    CHECK(peaks[1].time == 2 * kSecond);
    CHECK(peaks[1].bytes == 1000 + 10 + 5 + 3);
    CHECK(peaks[1].holders[3].stage == 1);
  }

  TEST_CASE("a rank that holds most from the beginning on runs nothing at its peak, or what begins there") {
    const Schedule schedule = lower(parse_schedule("0F0 0B0\n1F0 1B0\n"));
    CostTable costs = whole_costs(2, 1, 2);
    for (StageCosts& stage : costs.stages) stage.memory = {.parameter_bytes = 100};
    const auto peaks = memory_peaks(schedule, costs, simulate(schedule, costs).timeline);
    CHECK(to_text(peaks[0].running.value()) == "0F0");
    CHECK(!peaks[1].running);
    CHECK(memory_peaks(schedule, costs, {}).empty());
  }

  TEST_CASE("BPipe's partner holds activations of a stage that is not its own") {
    const Schedule schedule = lowered("bpipe", 4, 8);
    const CostTable costs = whole_costs(4, 1, 2);
    const auto peaks = memory_peaks(schedule, costs, simulate(schedule, costs).timeline);
    CHECK(std::ranges::any_of(peaks[3].holders, [](const MemoryHolder& holder) { return holder.stage == 0; }));
  }
}

TEST_SUITE("property") {
  TEST_CASE("kinds add up to the total at every moment, and the holders to the peak, whatever the schedule") {
    int kinds_seen = 0;
    for (const Schedule& schedule : memory_schedules()) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CAPTURE(schedule.name);
        CAPTURE(seed);
        const CostTable costs = with_all_kinds(random_costs(schedule, seed), seed);
        const Simulation result = simulate(schedule, costs);
        const std::vector<MemoryPeak> peaks = memory_peaks(schedule, costs, result.timeline);
        for (std::size_t r = 0; r < peaks.size(); ++r) {
          const RankTimeline& rank = result.timeline.ranks[r];
          std::vector<SimTime> moments;
          for (const MemorySample& sample : rank.memory) moments.push_back(sample.time);
          for (const auto& samples : rank.memory_by_kind) {
            kinds_seen += samples.empty() ? 0 : 1;
            for (const MemorySample& sample : samples) moments.push_back(sample.time);
          }
          for (const SimTime moment : moments) {
            std::int64_t sum = 0;
            for (const auto& samples : rank.memory_by_kind) {
              const std::int64_t bytes = bytes_at(samples, moment);
              REQUIRE(bytes >= 0);
              sum += bytes;
            }
            REQUIRE(sum == bytes_at(rank.memory, moment));
          }
          REQUIRE(peaks[r].bytes == result.peak_memory_bytes[r]);
          const BytesByKind by_kind = bytes_by_kind(peaks[r]);
          REQUIRE(std::accumulate(by_kind.begin(), by_kind.end(), std::int64_t{0}) == peaks[r].bytes);
          for (int kind = 0; kind < kMemoryKindCount; ++kind)
            REQUIRE(by_kind[kind] == bytes_at(rank.memory_by_kind[kind], peaks[r].time));
        }
      }
    }
    CHECK(kinds_seen > 1000);
  }
}

}  // namespace plumb::test
