// The formulas of the catalogue for eager, breadth-first, zero-bubble and forward-only schedules hold exactly with free
// links, equal stages and integer time.

#include <algorithm>
#include <array>

#include <doctest/doctest.h>

#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

/// Costs of one chunk, in seconds.
struct Split {
  int forward = 1;
  int input_grad = 1;
  int weight_grad = 1;
};

/// Costs with F, I >= W, as the formulas demand: equal ones, and ones that are unequal on purpose.
constexpr std::array kSplits{Split{1, 1, 1}, Split{3, 4, 2}, Split{5, 3, 3}};

SimTime whole_seconds(int n) {
  return n * kSecond;
}

Simulation predict_split(const Schedule& schedule, const Split& cost) {
  return simulate(schedule, chunk_cost_table(stage_count(schedule), {.forward = {Seconds(cost.forward)},
                                                                     .input_grad = {Seconds(cost.input_grad)},
                                                                     .weight_grad = {Seconds(cost.weight_grad)}}));
}

}  // namespace

TEST_SUITE("property") {
  TEST_CASE("eager 1F1B takes as long as 1F1B where links are free, and holds min(2(p-r)-1, m) activations") {
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 3 * p; ++m) {
        const Simulation result = predict_split(lowered("eager-1f1b", p, m), {3, 4, 2});
        INFO("p=", p, " m=", m);
        CHECK(result.makespan == whole_seconds((m + p - 1) * (3 + 4 + 2)));
        for (int r = 0; r < p; ++r) CHECK(result.peak_activations[r] == std::min(2 * (p - r) - 1, m));
      }
    }
  }

  TEST_CASE("breadth-first wastes (p-1)(F+B)/v where m >= p and holds everything") {
    for (int p = 1; p <= 6; ++p) {
      for (int v = 1; v <= 4; ++v) {
        for (int m = p; m <= 2 * p + 1; ++m) {
          const Simulation result = predict_split(lowered("bfs", p, m, v), {3, 4, 2});
          INFO("p=", p, " v=", v, " m=", m);
          CHECK(result.makespan ==
                whole_seconds((m * v + p - 1) * (3 + 4 + 2)));  // F and B of a chunk, a v-th of the rank's
          CHECK(std::ranges::all_of(result.peak_activations, [&](int n) { return n == m * v; }));
        }
      }
    }
  }

  TEST_CASE("ZB-H1 wastes (p-1)(F+I-W) where m >= p and holds min(p, m) activations on every rank") {
    for (const Split& cost : kSplits) {
      for (int p = 1; p <= 6; ++p) {
        for (int m = 1; m <= 3 * p; ++m) {
          const auto [f, i, w] = cost;
          const Simulation result = predict_split(lowered("zb-h1", p, m), cost);
          INFO("p=", p, " m=", m, " F=", f, " I=", i, " W=", w);
          if (m >= p) CHECK(result.makespan == whole_seconds(m * (f + i + w) + (p - 1) * (f + i - w)));
          CHECK(std::ranges::all_of(result.peak_activations, [&](int n) { return n == std::min(p, m); }));
        }
      }
    }
  }

  TEST_CASE("ZB-H2's span wastes (p-1)(F+I-2W) where m >= 2p-1, nothing if F = I = W, for min(2p-1, m) activations") {
    for (const Split& cost : kSplits) {
      for (int p = 1; p <= 6; ++p) {
        for (int m = 1; m <= 3 * p; ++m) {
          const auto [f, i, w] = cost;
          const Simulation result = predict_split(lowered("zb-h2", p, m), cost);
          INFO("p=", p, " m=", m, " F=", f, " I=", i, " W=", w);
          if (m >= 2 * p - 1) {
            CHECK(longest_span(result) == whole_seconds(m * (f + i + w) + (p - 1) * (f + i - 2 * w)));
            // The last rank starts (p-1)F late and does not idle then, unless it waits for I's.
            CHECK(result.makespan == whole_seconds(m * (f + i + w) + (p - 1) * (f + std::max(0, i - 2 * w))));
          }
          CHECK(std::ranges::all_of(result.peak_activations, [&](int n) { return n == std::min(2 * p - 1, m); }));
        }
      }
    }
  }

  TEST_CASE("interleaved zero bubble wastes (p-1)(F+I-W)/v where p divides m and F = I = W, for (v-1)g + p chunks") {
    for (int p = 1; p <= 6; ++p) {
      for (int v = 1; v <= 4; ++v) {
        for (int groups = 1; groups <= 3; ++groups) {
          const int m = groups * p;
          const Simulation result = predict_split(lowered("izb", p, m, v), {1, 1, 1});
          INFO("p=", p, " v=", v, " m=", m);
          CHECK(result.makespan == whole_seconds(3 * m * v + p - 1));
          CHECK(std::ranges::all_of(result.peak_activations, [&](int n) { return n == std::min(m * v, v * p); }));
        }
      }
    }
  }

  TEST_CASE("GPipe with recomputation takes (m+p-1)(F+B) + mR: R is not on the gradients' way between ranks") {
    // R = F = 3: the last rank recomputes before each of its backwards, the others while they wait or in turn with it.
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 3 * p; ++m) {
        const auto time = [&](Checkpoint checkpoint) {
          const Schedule schedule = make_schedule("gpipe", {.ranks = p, .microbatches = m});
          return predict_split(lower(schedule, {.checkpoint = checkpoint}), {3, 4, 2}).makespan;
        };
        INFO("p=", p, " m=", m);
        CHECK(time(Checkpoint::kNever) == whole_seconds((m + p - 1) * (3 + 6)));
        CHECK(time(Checkpoint::kAlways) == whole_seconds((m + p - 1) * (3 + 6) + m * 3));
        if (m > 1) CHECK(time(Checkpoint::kExceptLast) == whole_seconds((m + p - 1) * (3 + 6) + (m - 1) * 3));
      }
    }
  }

  TEST_CASE("PipeDream holds p-r weight versions on rank r, PipeDream-2BW two") {
    for (int p = 2; p <= 6; ++p) {
      const int m = 4 * p;
      const auto peak_versions = [&](std::string_view name) {
        CostTable costs = chunk_cost_table(p, {});
        for (StageCosts& stage : costs.stages) stage.memory = {.parameter_bytes = 1};
        return simulate(lowered(name, p, m), costs).peak_memory_bytes;
      };
      for (int r = 0; r < p; ++r) {
        INFO("p=", p, " r=", r);
        CHECK(peak_versions("pipedream")[r] == p - r);
        CHECK(peak_versions("pipedream-2bw")[r] == 2);
      }
    }
  }

  TEST_CASE("Seq1F1B wastes (p-1)(F+B)/k and holds min(p-r-1+k, mk) slices") {
    for (int p = 1; p <= 5; ++p) {
      for (int k = 1; k <= 4; ++k) {
        for (int m = p; m <= 2 * p; ++m) {
          const Schedule schedule = make_schedule("seq1f1b", {.ranks = p, .microbatches = m, .slices = k});
          const Simulation result = predict_split(lower(schedule), {3, 4, 2});  // F, I and W of a slice
          INFO("p=", p, " k=", k, " m=", m);
          CHECK(result.makespan == whole_seconds((m * k + p - 1) * (3 + 4 + 2)));
          for (int r = 0; r < p; ++r) CHECK(result.peak_activations[r] == std::min(p - r - 1 + k, m * k));
        }
      }
    }
  }

  TEST_CASE("SVPP wastes (p-1)(F+B)/(vk), and holds MEPipe's v max(p,k) + min(p,k) - 1 slices of a chunk") {
    for (int p = 1; p <= 5; ++p) {
      for (int k = 1; k <= 6; ++k) {
        const int group = (p + k - 1) / k;
        for (int v = 1; v <= 3; ++v) {
          const int m = 4 * group;
          const Schedule schedule = make_schedule("svpp", {.ranks = p, .microbatches = m, .chunks = v, .slices = k});
          const Simulation result = predict_split(lower(schedule), {3, 4, 2});  // F, I and W of a chunk's slice
          INFO("p=", p, " k=", k, " v=", v);
          CHECK(result.makespan == whole_seconds((m * k * v + p - 1) * (3 + 4 + 2)));
          for (int r = 0; r < p; ++r) CHECK(result.peak_activations[r] == (v - 1) * group * k + p - 1 - r + k);
          // The paper's most, of rank 0, is for groups of max(p, k) slices.
          if (k >= p || p % k == 0) CHECK(result.peak_activations[0] == v * std::max(p, k) + std::min(p, k) - 1);
        }
      }
    }
  }

  TEST_CASE("SlimPipe wastes (p-1)(F+B)/(vk) and holds vk + 2(p-1-r) slices of a chunk where p divides k") {
    for (int p = 1; p <= 5; ++p) {
      for (const int k : {p, 2 * p, 3 * p}) {
        for (int v = 1; v <= 3; ++v) {
          for (const int m : {1, 3, 4}) {
            const Schedule order = make_schedule("slimpipe", {.ranks = p, .microbatches = m, .chunks = v, .slices = k});
            const Simulation result = predict_split(lower(order), {3, 4, 2});  // F, I and W of a chunk's slice
            INFO("p=", p, " k=", k, " v=", v, " m=", m);
            CHECK(result.makespan == whole_seconds((m * k * v + p - 1) * (3 + 4 + 2)));
            for (int r = 0; r < p; ++r)
              CHECK(result.peak_activations[r] == std::min(v * k + 2 * (p - 1 - r), m * k * v));
          }
        }
      }
    }
  }

  TEST_CASE("TeraPipe wastes (p-1)(F+B)/k and holds all mk slices") {
    for (int p = 1; p <= 5; ++p) {
      for (int k = 1; k <= 4; ++k) {
        for (int m = 1; m <= p + 1; ++m) {
          const Schedule schedule = make_schedule("terapipe", {.ranks = p, .microbatches = m, .slices = k});
          const Simulation result = predict_split(lower(schedule), {3, 4, 2});  // F, I and W of a slice
          INFO("p=", p, " k=", k, " m=", m);
          CHECK(result.makespan == whole_seconds((m * k + p - 1) * (3 + 4 + 2)));
          CHECK(std::ranges::all_of(result.peak_activations, [=](int n) { return n == m * k; }));
        }
      }
    }
  }

  TEST_CASE("GEMS takes p B a micro-batch and (m+p-1) F besides, and holds one micro-batch") {
    for (const int p : {2, 4, 6}) {
      for (int m = 2; m <= 7; ++m) {
        const Simulation result = predict_split(lowered("gems", p, m), {3, 4, 2});
        INFO("p=", p, " m=", m);
        CHECK(result.makespan == whole_seconds(m * p * (4 + 2) + (m + p - 1) * 3));
        CHECK(std::ranges::all_of(result.peak_activations, [](int n) { return n == 1; }));
      }
    }
    // Li and Hoefler 2021, table 2: (p-1)/(p+1/2) of the time at B = 2F and many micro-batches.
    const double bubble = predict_split(lowered("gems", 8, 1000), {1, 1, 1}).bubble_ratio;
    CHECK(bubble == doctest::Approx(7 / 8.5).epsilon(0.001));
  }

  TEST_CASE("forward-only takes (m+p-1)F and holds one micro-batch") {
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 2 * p; ++m) {
        const Simulation result = predict_split(lowered("forward-only", p, m), {3, 4, 2});
        CHECK(result.makespan == whole_seconds((m + p - 1) * 3));
        CHECK(std::ranges::all_of(result.peak_activations, [](int n) { return n == 1; }));
      }
    }
  }
}

TEST_SUITE("oracle") {
  // These figures were computed by the authors of zero bubble from costs they profiled, in microseconds; they are
  // printed to four digits.
  TEST_CASE("1F1B, ZB-H1 and ZB-H2 have the bubble rates that Qi et al. print for 1.5B and 14.6B") {
    struct Row {
      int p, m;
      double f, i, w, c;
      double one_f_one_b, h1, h2;
    };
    for (const Row& row : {Row{8, 24, 18522e-6, 18086e-6, 9337e-6, 601e-6, .2431, .1585, .1083},
                           Row{16, 64, 11307e-6, 11254e-6, 8101e-6, 379e-6, .2082, .1088, .0516}}) {
      const auto rate = [&row](std::string_view name) {
        const ChunkCosts costs{.forward = {Seconds{row.f}},
                               .input_grad = {Seconds{row.i}},
                               .weight_grad = {Seconds{row.w}},
                               .hop_latency = Seconds{row.c}};
        return simulate(lowered(name, row.p, row.m), chunk_cost_table(row.p, costs)).span_bubble_ratio;
      };
      const double printed = 0.5e-4;  // half of the last digit
      CHECK(rate("1f1b") == doctest::Approx(row.one_f_one_b).epsilon(printed / row.one_f_one_b));
      CHECK(rate("zb-h1") == doctest::Approx(row.h1).epsilon(printed / row.h1));
      CHECK(rate("zb-h2") <= row.h2 + printed);
    }
  }
  // Their memory counts half of an activation released at I. With all of it released at W no order gets below .1015
  // and .0478 at 2p (schedules/bounds).
  TEST_CASE("zb-auto has the bubble rates that Qi et al. print for 1p and 2p, or lower, within the memory") {
    struct Row {
      int p, m;
      double f, i, w, c;
      double one, two;
    };
    for (const Row& row : {Row{8, 24, 18522e-6, 18086e-6, 9337e-6, 601e-6, .1585, .0433},
                           Row{16, 64, 11307e-6, 11254e-6, 8101e-6, 379e-6, .1088, .0054}}) {
      for (const auto& [ratio, printed] : {std::pair{1, row.one}, std::pair{2, row.two}}) {
        const ChunkCosts costs{.forward = {Seconds{row.f}},
                               .input_grad = {Seconds{row.i}},
                               .weight_grad = {Seconds{row.w}},
                               .hop_latency = Seconds{row.c}};
        const Schedule schedule = make_schedule("zb-auto", {.ranks = row.p,
                                                            .microbatches = row.m,
                                                            .memory_ratio = double(ratio),
                                                            .released_at_input_grad_ratio = 0.5,
                                                            .costs = costs});
        CostTable table = chunk_cost_table(row.p, costs);
        for (StageCosts& stage : table.stages) stage.memory = {.forward_bytes = 2, .released_at_input_grad_bytes = 1};
        const Simulation result = simulate(lower(schedule), table);
        CAPTURE(row.p);
        CAPTURE(ratio);
        CHECK(result.span_bubble_ratio <= printed + 0.5e-4);  // half of the last digit
        CHECK(std::ranges::all_of(result.peak_memory_bytes, [&](auto bytes) { return bytes <= 2 * ratio * row.p; }));
      }
    }
  }
}

TEST_SUITE("property") {
  TEST_CASE("zb-auto with all of an activation released at W holds memory_ratio * p activations at most") {
    for (int p = 1; p <= 5; ++p) {
      for (int m = 1; m <= 2 * p; ++m) {
        for (const double ratio : {1.0, 1.5, 2.0}) {
          const Schedule schedule = make_schedule("zb-auto", {.ranks = p, .microbatches = m, .memory_ratio = ratio});
          const Simulation result = predict_split(lower(schedule), {1, 1, 1});
          CHECK(std::ranges::all_of(result.peak_activations, [&](int n) { return n <= ratio * p; }));
        }
      }
    }
  }
}

}  // namespace plumb::test
