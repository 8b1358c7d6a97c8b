// The papers' formulas hold exactly with free links, equal stages and integer time.

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

// Unequal on purpose, so that no formula holds by accident of F = B.
constexpr int kF = 3;
constexpr int kB = 5;

Simulation predict_whole(const Schedule& schedule) {
  return simulate(schedule, whole_costs(stage_count(schedule), kF, kB));
}

}  // namespace

TEST_SUITE("property") {
  TEST_CASE("GPipe and 1F1B take (m+p-1)(F+B) and idle for (p-1)/(m+p-1) of it") {
    for (const char* name : {"gpipe", "1f1b"}) {
      for (int p = 1; p <= 8; ++p) {
        for (int m = 1; m <= 3 * p; ++m) {
          const Simulation result = predict_whole(lowered(name, p, m));
          INFO(name, " p=", p, " m=", m);
          CHECK(result.makespan == (m + p - 1) * (kF + kB) * kSecond);
          CHECK(std::ranges::all_of(result.busy, [&](SimTime busy) { return busy == m * (kF + kB) * kSecond; }));
          CHECK(result.bubble_ratio ==
                doctest::Approx(double(p - 1) / (m + p - 1)).epsilon(1e-12));  // a division of doubles
        }
      }
    }
  }

  TEST_CASE("interleaved 1F1B wastes (p-1)(F+B)/v of a rank's share where p divides m") {
    for (int p = 2; p <= 6; ++p) {
      for (int v = 1; v <= 4; ++v) {
        for (int groups = 1; groups <= 3; ++groups) {
          const int m = groups * p;
          const Simulation result = predict_whole(lowered("interleaved", p, m, v));
          INFO("p=", p, " v=", v, " m=", m);
          // F and B are of one chunk here, a v-th of the rank's share.
          CHECK(result.makespan == (m * v + p - 1) * (kF + kB) * kSecond);
        }
      }
    }
  }

  TEST_CASE("without pipelining all ranks but one idle at any time: the bubble is (p-1)/p") {
    for (int p = 1; p <= 5; ++p) {
      const Simulation result = predict_whole(lowered("naive", p, 4));
      CHECK(result.makespan == 4 * p * (kF + kB) * kSecond);
      CHECK(result.bubble_ratio == doctest::Approx(double(p - 1) / p).epsilon(1e-12));
    }
  }

  TEST_CASE("PipeDream has no bubble between a rank's first backward and its last forward") {
    const int p = 5;
    const Simulation result = predict_whole(lowered("pipedream", p, 20));
    for (const RankTimeline& rank : result.timeline.ranks) {
      std::vector<Span> compute;
      std::ranges::copy_if(rank.spans, std::back_inserter(compute),
                           [](const Span& s) { return s.stream == Stream::kCompute; });
      const auto is = [](Op op) { return [op](const Span& span) { return span.action.op == op; }; };
      const auto first = std::ranges::find_if(compute, is(Op::kBackward));
      const auto last = std::ranges::find_if(compute.rbegin(), compute.rend(), is(Op::kForward)).base() - 1;
      REQUIRE(first < last);
      for (auto span = first; span < last; ++span) CHECK(span->end == (span + 1)->start);
    }
  }

  TEST_CASE("a rank holds at most m activations under GPipe, min(p-r, m) under 1F1B, w_r + 1 chunks interleaved") {
    for (int p = 2; p <= 6; ++p) {
      for (int m = 1; m <= 2 * p; ++m) {
        const Simulation gpipe = predict_whole(lowered("gpipe", p, m));
        const Simulation one_f_one_b = predict_whole(lowered("1f1b", p, m));
        for (int r = 0; r < p; ++r) {
          CHECK(gpipe.peak_activations[r] == m);
          CHECK(one_f_one_b.peak_activations[r] == std::min(p - r, m));
          CHECK(one_f_one_b.peak_memory_bytes[r] == std::min(p - r, m));  // one byte a chunk in this table
        }
      }
      for (int v = 2; v <= 3; ++v) {
        const Simulation interleaved = predict_whole(lowered("interleaved", p, 2 * p, v));
        for (int r = 0; r < p; ++r) {
          CHECK(interleaved.peak_activations[r] == std::min(2 * (p - 1 - r) + (v - 1) * p + 1, 2 * p * v));
        }
      }
    }
  }
}

}  // namespace plumb::test
