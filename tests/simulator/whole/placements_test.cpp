// Closed forms of the schedules on a V, a snake or two lanes hold exactly with free links and F = I = W = 1 s of a
// chunk.

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

struct Measured {
  SimTime bubble{0};       ///< makespan less the time that a rank computes
  SimTime span_bubble{0};  ///< the longest span less that time
  std::vector<int> peaks;
};

Measured measure(std::string_view name, int p, int m, int chunks = 1) {
  const Schedule schedule = lowered(name, p, m, chunks);
  const Simulation result = simulate(schedule, chunk_cost_table(stage_count(schedule), {}));
  SimTime span{0};
  for (int r = 0; r < p; ++r) span = std::max(span, result.last_end[r] - result.first_start[r]);
  return {result.makespan - result.busy[0], span - result.busy[0], result.peak_activations};
}

bool all_equal(const std::vector<int>& values, int to) {
  return std::ranges::all_of(values, [to](int value) { return value == to; });
}

}  // namespace

TEST_SUITE("property") {
  TEST_CASE("ZB-V waits for nothing but its first forward, and holds 2p chunks on every rank") {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 2 * p - 1; m <= 3 * p; ++m) {
        INFO("p=", p, " m=", m);
        const Measured measured = measure("zb-v", p, m);
        CHECK(measured.bubble == (p - 1) * kSecond);
        CHECK(measured.span_bubble == SimTime{0});
        CHECK(all_equal(measured.peaks, 2 * p));
      }
    }
  }

  TEST_CASE("V-Half and V-Min idle for the slots that their building blocks leave, within their memory") {
    for (int p = 2; p <= 10; ++p) {
      for (int m = p; m <= 3 * p; ++m) {
        INFO("p=", p, " m=", m);
        const Measured half = measure("v-half", p, m);
        if (p > 2 && p % 2 == 0) CHECK(half.bubble == (3 * p - 7) * kSecond);
        CHECK(half.bubble <= (3 * p - 5) * kSecond);
        CHECK(std::ranges::max(half.peaks) <= p + 2);
        const Measured min = measure("v-min", p, m);
        const SimTime most_of_min = (p % 3 == 0 ? 4 * p - 6 : 4 * p - 5) * kSecond;
        CHECK(min.bubble <= most_of_min);
        if (p > 3) CHECK(min.bubble == most_of_min);
        CHECK(std::ranges::max(min.peaks) == 2 * ((p + 4) / 3));
      }
    }
  }

  TEST_CASE("V-1F1B idles for the slots that its building block leaves, within its memory") {
    for (int p = 1; p <= 9; ++p) {
      for (int m = p; m <= 3 * p; ++m) {
        INFO("p=", p, " m=", m);
        const Measured measured = measure("v-1f1b", p, m);
        CHECK(measured.bubble <= 5 * (p - 1) * kSecond);
        if (p % 3 == 1) CHECK(measured.bubble == 5 * (p - 1) * kSecond);
        CHECK(std::ranges::max(measured.peaks) <= 2 * (2 * p / 3) + 2);
      }
    }
  }

  TEST_CASE("V-Min collapses where I outlasts W: its pattern counts on equal slots") {
    const Schedule schedule = lowered("v-min", 8, 24);
    const CostTable costs = chunk_cost_table(16, {.input_grad = {Seconds{1.5}}, .weight_grad = {Seconds{0.5}}});
    CHECK(simulate(schedule, costs).span_bubble_ratio > 0.4);  // 0.158 at F = I = W
  }

  TEST_CASE("DualPipeV idles for 2(p-1) chunks if overlap gains nothing, and holds 2p+1") {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 2 * p; m <= 3 * p; ++m) {
        INFO("p=", p, " m=", m);
        const Measured measured = measure("dualpipev", p, m);
        CHECK(measured.bubble == 2 * (p - 1) * kSecond);
        CHECK(all_equal(measured.peaks, 2 * p + 1));
      }
    }
  }

  TEST_CASE("STP idles for p-1 chunks if overlap gains nothing, and holds 3p and max(1, r) where m >= 3p-1") {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 3 * p - 1; m <= 4 * p; ++m) {
        INFO("p=", p, " m=", m);
        const Measured measured = measure("stp", p, m);
        CHECK(measured.bubble == (p - 1) * kSecond);
        for (int r = 0; r < p; ++r) CHECK(measured.peaks[r] == std::min(3 * p + std::max(1, r), 2 * m));
      }
    }
  }

  TEST_CASE("STP exposes the exchanges of 2p forwards and, on every other rank, of one more") {
    // Every other forward is in a pair, and hides its exchange of 1 s behind the other pass, of 3 s (Qi et al. 2025,
    // table 1: 2p+1).
    for (int p = 1; p <= 6; ++p) {
      for (int m = 3 * p - 1; m <= 4 * p; ++m) {
        INFO("p=", p, " m=", m);
        const Schedule schedule = lowered("stp", p, m);
        CostTable costs = chunk_cost_table(
            stage_count(schedule), {.forward = {Seconds{3}}, .input_grad = {Seconds{3}}, .weight_grad = {Seconds{3}}});
        for (StageCosts& stage : costs.stages)
          stage.segments[static_cast<std::size_t>(Op::kForward)].front().push_back(
              {.kind = Segment::Kind::kCollective, .seconds = Seconds{1}, .group = Group::kTensor});
        const Simulation result = simulate(schedule, costs);
        for (int r = 0; r < p; ++r)
          CHECK(result.busy[r] == 2 * m * 9 * kSecond + (2 * p + (r % 2 == 0 ? 1 : 0)) * kSecond);
      }
    }
  }

  TEST_CASE("DualPipe idles for p-2 forwards if overlap gains nothing, and holds p+1 micro-batches") {
    for (int p = 2; p <= 8; p += 2) {
      for (int m = 2 * p; m <= 4 * p; m += 2) {
        INFO("p=", p, " m=", m);
        const Measured measured = measure("dualpipe", p, m);
        CHECK(measured.bubble == (p - 2) * kSecond);
        CHECK(all_equal(measured.peaks, p + 1));
      }
    }
  }

  TEST_CASE("Chimera idles for p-2 slots at F = B, and needs p activations, where p divides m") {
    for (int p = 2; p <= 8; p += 2) {
      for (int m = 2; m <= 4 * p; m += 2) {
        INFO("p=", p, " m=", m);
        const Schedule schedule = lowered("chimera", p, m);
        const Simulation result = simulate(schedule, whole_costs(stage_count(schedule), 1, 1));
        if (m % p == 0) CHECK(result.makespan - result.busy[0] == (p - 2) * kSecond);
        CHECK(std::ranges::max(result.peak_activations) <= (m % p == 0 ? p : p + 1));
      }
    }
  }

  TEST_CASE("BPipe takes 1F1B's time and levels its activations at ceil((p+2)/2), if evicting is free") {
    for (int p = 1; p <= 9; ++p) {
      for (int m = 1; m <= 3 * p; ++m) {
        INFO("p=", p, " m=", m);
        const Simulation result = simulate(lowered("bpipe", p, m), whole_costs(p, 3, 5));
        CHECK(result.makespan == (m + p - 1) * 8 * kSecond);
        CHECK(std::ranges::max(result.peak_activations) <= (p + 3) / 2);
      }
    }
  }

  TEST_CASE("Hanayo idles for p-1 forwards and backwards of a chunk at F = B where p divides m") {
    for (int p = 1; p <= 6; ++p) {
      for (int v = 1; v <= 6; ++v) {
        for (int m = 1; m <= 3 * p; ++m) {
          INFO("p=", p, " v=", v, " m=", m);
          const Schedule schedule = lowered("hanayo", p, m, v);
          const Simulation result = simulate(schedule, whole_costs(stage_count(schedule), 1, 1));
          if (m % p == 0) CHECK(result.makespan - result.busy[0] == 2 * (p - 1) * kSecond);
          CHECK(std::ranges::max(result.peak_activations) <= std::min(p, m) * v);
        }
      }
    }
  }
}

}  // namespace plumb::test
