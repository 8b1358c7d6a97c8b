// Vocabulary-parallel 1F1B (Yeung et al. 2024): what its shards wait for, worked out on paper, and that its bubble does
// not grow with the number of micro-batches.

#include <algorithm>
#include <array>
#include <vector>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

/// Times of a rank's passes, in seconds.
struct Passes {
  int forward = 0;
  int backward = 0;
  int output = 0;           ///< S
  int output_gradient = 0;  ///< T

  int interval() const { return forward + backward + output + output_gradient; }
};

std::vector<Seconds> by_stage(int ranks, double of_stage, double of_shard) {
  std::vector<Seconds> seconds(static_cast<std::size_t>(ranks), Seconds{of_stage});
  seconds.resize(2 * static_cast<std::size_t>(ranks), Seconds{of_shard});
  return seconds;
}

/// Algorithm 1: S is the shard's F, and T its B.
ChunkCosts costs_of_1(int ranks, const Passes& passes) {
  return {.forward = by_stage(ranks, passes.forward, passes.output),
          .backward = by_stage(ranks, passes.backward, passes.output_gradient)};
}

/// Algorithm 2: S is the shard's F and I, and T its W.
ChunkCosts costs_of_2(int ranks, const Passes& passes) {
  return {.forward = by_stage(ranks, passes.forward, passes.output - 1),
          .input_grad = by_stage(ranks, passes.backward, 1),
          .weight_grad = by_stage(ranks, 0, passes.output_gradient)};
}

SimTime makespan_of(std::string_view name, int ranks, int microbatches, const ChunkCosts& costs) {
  const Schedule schedule = make_schedule(name, {.ranks = ranks, .microbatches = microbatches, .costs = costs});
  return simulate(lower(schedule), chunk_cost_table(2 * ranks, costs)).makespan;
}

constexpr std::array kShortShards{Passes{2, 4, 1, 1}, Passes{2, 4, 2, 2}, Passes{3, 7, 1, 2},
                                  Passes{5, 6, 2, 1}, Passes{1, 9, 4, 5}, Passes{1, 2, 1, 1}};

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("shards wait for the last stage, T for the S of all, and the last stage for the T of all") {
    // F = 1, B = 2, S = T = 1. 1F0 ends at 2, both S of micro-batch 0 at 3. 1F1 [4, 5] waits for 0F1 [3, 4], and both S of
    // micro-batch 1 end at 6. T of micro-batch 0 [6, 7], so 1B0 [7, 9] and 0B0 [9, 11]; 3B1 [9, 10], 1B1 [10, 12].
    const Schedule order = parse_schedule(
        "stages: 0/0/0 1/1/0 0/2/0 1/2/0\n"
        "0F0 2F0 0F1 2F1 2B0 2B1 0B0 0B1\n"
        "1F0 3F0 1F1 3F1 3B0 1B0 3B1 1B1\n");
    const Simulation result = simulate(lower(order), chunk_cost_table(4, costs_of_1(2, {1, 2, 1, 1})));
    const auto start = [&](int rank, int nth) {
      std::vector<SimTime> starts;
      for (const Span& span : result.timeline.ranks[static_cast<std::size_t>(rank)].spans)
        if (is_compute(span.action.op) && span.action.op != Op::kOptimizerStep) starts.push_back(span.start);
      return starts[static_cast<std::size_t>(nth)] / kSecond;
    };
    const std::vector<std::int64_t> first{0, 2, 3, 5, 6, 7, 9, 12}, second{1, 2, 4, 5, 6, 7, 9, 10};
    for (int i = 0; i < 8; ++i) {
      CHECK(start(0, i) == first[static_cast<std::size_t>(i)]);
      CHECK(start(1, i) == second[static_cast<std::size_t>(i)]);
    }
    CHECK(result.makespan == 14 * kSecond);
  }

  TEST_CASE("a rank that waits for a shard names the action that it waits for") {
    const Schedule order = parse_schedule(
        "stages: 0/0/0 1/1/0 0/2/0 1/2/0\n"
        "0F0 2F0 2B0 0B0\n"
        "1F0 3F0 3B0 1B0\n");
    ChunkCosts costs = costs_of_1(2, {1, 2, 1, 1});
    costs.forward[3] = Seconds{5};  // one shard is slow, and holds all up
    const Simulation result = simulate(lower(order), chunk_cost_table(4, costs));
    CHECK(result.makespan == (1 + 1 + 5 + 1 + 2 + 2) * kSecond);
  }
}

TEST_SUITE("property") {
  TEST_CASE("a further micro-batch takes F+B+S+T on the busiest and on every other rank where S+T <= B") {
    for (const Passes& passes : kShortShards) {
      for (const int p : {1, 2, 3, 4, 6, 8, 12, 16}) {
        INFO("p=", p, " F=", passes.forward, " B=", passes.backward, " S=", passes.output);
        for (const int m : {2 * p + 2, 3 * p + 2}) {
          const auto growth = [&](std::string_view name, const ChunkCosts& costs) {
            return makespan_of(name, p, m + p, costs) - makespan_of(name, p, m, costs);
          };
          CHECK(growth("vocab-1", costs_of_1(p, passes)) == p * passes.interval() * kSecond);
          CHECK(growth("vocab-2", costs_of_2(p, passes)) == p * passes.interval() * kSecond);
        }
      }
    }
  }

  TEST_CASE("its bubble is (p-1)(F+B) of 1F1B and no more than one interval for each collective") {
    for (const Passes& passes : kShortShards) {
      for (const int p : {1, 2, 3, 4, 6, 8, 12, 16}) {
        INFO("p=", p, " F=", passes.forward, " B=", passes.backward, " S=", passes.output);
        const int m = 3 * p + 2;
        const auto bubble = [&](std::string_view name, const ChunkCosts& costs) {
          return makespan_of(name, p, m, costs) - m * passes.interval() * kSecond;
        };
        const SimTime of_1f1b = (p - 1) * (passes.forward + passes.backward) * kSecond;
        CHECK(bubble("vocab-1", costs_of_1(p, passes)) <= of_1f1b + 2 * passes.interval() * kSecond);
        CHECK(bubble("vocab-2", costs_of_2(p, passes)) <= of_1f1b + passes.interval() * kSecond);
      }
    }
  }

  TEST_CASE("the output layer on the last stage costs 1F1B p times as much of it for each micro-batch") {
    const int p = 8, m = 32;
    const Passes passes{2, 4, 1, 1};
    std::vector<Seconds> forward(8, Seconds{2}), backward(8, Seconds{4});
    forward.back() += Seconds{8 * 1};
    backward.back() += Seconds{8 * 1};
    const SimTime on_last =
        simulate(lowered("1f1b", p, m), chunk_cost_table(p, {.forward = forward, .backward = backward})).makespan;
    CHECK(on_last >= m * (2 + 4 + 8 * 2) * kSecond);
    CHECK(makespan_of("vocab-2", p, m, costs_of_2(p, passes)) < on_last / 2);
  }
}

}  // namespace plumb::test
