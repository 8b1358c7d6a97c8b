// Properties that must hold for any schedule and any costs.

#include <doctest/doctest.h>

#include "tests/simulator/support.h"
#include "traces/statistics.h"

namespace plumb::test {
namespace {

std::vector<SimTime> starts(const Simulation& simulation) {
  std::vector<SimTime> all;
  for (const RankTimeline& rank : simulation.timeline.ranks) {
    for (const Span& span : rank.spans) all.push_back(span.start);
  }
  return all;
}

}  // namespace

TEST_SUITE("property") {
  TEST_CASE("a faster operation or a faster link never delays any action of a fixed order") {
    for (const Schedule& schedule : all_lowered(4, 6, 1)) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const CostTable costs = random_costs(schedule, seed);
        const std::vector<SimTime> before = starts(simulate(schedule, costs));

        CostTable faster_op = costs;
        auto& stage = faster_op.stages[seed % schedule.stages.size()];
        for (Segment& segment : stage.segments[seed % 5].front()) segment.seconds /= 2;
        CostTable faster_link = costs;
        faster_link.links[{0, 1}] = {};
        for (const CostTable& faster : {faster_op, faster_link}) {
          const std::vector<SimTime> after = starts(simulate(schedule, faster));
          for (std::size_t i = 0; i < before.size(); ++i) REQUIRE(after[i] <= before[i]);
        }
      }
    }
  }

  TEST_CASE("costs times k are times times k") {
    constexpr int kFactor = 7;
    for (const Schedule& schedule : all_lowered(4, 6, 1)) {
      const CostTable costs = random_costs(schedule, 11);
      CostTable scaled = costs;
      for (StageCosts& stage : scaled.stages) {
        for (auto& by_part : stage.segments) by_part.front().front().seconds *= kFactor;
      }
      for (auto& [ends, link] : scaled.links) {
        link.latency *= kFactor;
        link.bytes_per_second /= kFactor;
      }
      const std::vector<SimTime> once = starts(simulate(schedule, costs));
      const std::vector<SimTime> times_k = starts(simulate(schedule, scaled));
      for (std::size_t i = 0; i < once.size(); ++i) REQUIRE(times_k[i] == kFactor * once[i]);
    }
  }

  TEST_CASE("renaming the ranks changes nothing but their names") {
    for (const Schedule& schedule : all_lowered(4, 6, 2)) {
      if (schedule.name == "bpipe") continue;  // its partner ranks are told by their numbers
      const int p = static_cast<int>(schedule.ranks.size());
      const auto renamed = [p](int rank) {
        return (rank * 3 + 2) % p;
      };  // a permutation: 3 and 4 have no common factor
      Schedule other = schedule;
      for (StagePlace& place : other.stages) place.rank = renamed(place.rank);
      for (int r = 0; r < p; ++r) other.ranks[renamed(r)] = schedule.ranks[r];
      const CostTable costs = random_costs(schedule, 21);
      CostTable other_costs = costs;
      other_costs.links.clear();
      for (const auto& [ends, link] : costs.links)
        other_costs.links[{renamed(ends.first), renamed(ends.second)}] = link;
      const Simulation expected = simulate(schedule, costs);
      const Simulation result = simulate(other, other_costs);
      CHECK(result.makespan == expected.makespan);
      for (int r = 0; r < p; ++r) {
        CHECK(result.busy[renamed(r)] == expected.busy[r]);
        CHECK(result.peak_memory_bytes[renamed(r)] == expected.peak_memory_bytes[r]);
        CHECK(result.timeline.ranks[renamed(r)].spans.back().end == expected.timeline.ranks[r].spans.back().end);
      }
    }
  }

  TEST_CASE("without a timeline the sums are the same") {
    for (const Schedule& schedule : all_lowered(4, 8, 2)) {
      for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
        const CostTable costs = random_costs(schedule, 3);
        const Simulation full = simulate(schedule, costs, {.sends = sends});
        const Simulation sums = simulate(schedule, costs, {.sends = sends, .record_timeline = false});
        CHECK(sums.makespan == full.makespan);
        CHECK(sums.busy == full.busy);
        CHECK(sums.peak_memory_bytes == full.peak_memory_bytes);
        CHECK(sums.peak_activations == full.peak_activations);
        CHECK(sums.critical_path.empty());
        CHECK(sums.timeline.ranks.empty());
      }
    }
  }

  TEST_CASE("the critical path starts at 0, ends at the makespan and never waits without a reason") {
    for (const Schedule& schedule : all_lowered(4, 8, 1)) {
      for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
        const Simulation result = simulate(schedule, random_costs(schedule, 5), {.sends = sends});
        const std::vector<CriticalStep>& path = result.critical_path;
        REQUIRE(!path.empty());
        CHECK(path.front().start == SimTime{0});
        CHECK(path.back().end == result.makespan);
        for (std::size_t i = 1; i < path.size(); ++i) {
          if (path[i].reason == Reason::kRendezvous) {
            CHECK(path[i].start == path[i - 1].start);
          } else if (path[i].reason == Reason::kChannel) {
            CHECK(path[i].start <= path[i - 1].end);  // the channel is free before the delivery
          } else {
            CHECK(path[i].start == path[i - 1].end);
          }
        }
      }
    }
  }

  TEST_CASE("statistics of the predicted timeline are the simulation's own sums") {
    for (const Schedule& schedule : all_lowered(4, 8, 2)) {
      const Simulation result = simulate(schedule, random_costs(schedule, 9));
      const Statistics statistics = statistics_of(result.timeline);
      CHECK(statistics.makespan == result.makespan);
      CHECK(statistics.bubble_ratio == result.bubble_ratio);
      CHECK(statistics.span_bubble_ratio == result.span_bubble_ratio);
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        CHECK(statistics.ranks[r].busy == result.busy[r]);
        CHECK(statistics.ranks[r].peak_memory_bytes == result.peak_memory_bytes[r]);
      }
    }
  }
}

}  // namespace plumb::test
