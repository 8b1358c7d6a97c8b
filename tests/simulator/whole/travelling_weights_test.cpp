// Weights that travel from rank to rank (WeiPipe, Lin et al. 2025; TawPipe, Wu & Chen 2025): when they come, worked out on
// paper, what their rings and groups cost, and what memory they take.

#include <array>
#include <vector>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "simulator/path/sensitivity.h"
#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

/// Costs of a step in seconds: F and B of a part, and a part's weights (or their gradient) on a link.
struct PartTimes {
  int forward = 0;
  int backward = 0;
  int weights = 0;
};

CostTable costs_of(int stages, const PartTimes& times, double latency = 0) {
  return chunk_cost_table(stages, {.forward = {Seconds{static_cast<double>(times.forward)}},
                                   .backward = {Seconds{static_cast<double>(times.backward)}},
                                   .weights = {Seconds{static_cast<double>(times.weights)}},
                                   .hop_latency = Seconds{latency}});
}

/// Returns the seconds by which the step is longer than a rank's work: m/p micro-batches of p parts.
std::int64_t bubble_of(std::string_view name, const ScheduleParameters& parameters, const PartTimes& times) {
  const Schedule schedule = lower(make_schedule(name, parameters));
  const Simulation result = simulate(schedule, costs_of(stage_count(schedule), times));
  return result.makespan / kSecond - parameters.microbatches * (times.forward + times.backward);
}

/// Two copies of one part. Rank 0 owns it, and sends it twice.
const char* const kTwice =
    "microbatches: 2\nstages: 0/0/0 1/0/1\n"
    "0SEND_WEIGHTS1 0F0 0SEND_WEIGHTS1 0B0 0RECV_WGRAD1 0OPTIMIZER_STEP\n"
    "1RECV_WEIGHTS0 1F1 1RESHARD 1RECV_WEIGHTS0 1B1 1SEND_WGRAD0 1RESHARD\n";

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("computing waits for the weights, the optimizer for the gradients, and both for a link's latency") {
    // F = 2, B = 4, a message 3 on its link and 1 on its way: 0SEND [0, 3] delivers at 4, 1F1 [4, 6]. 0F0 [0, 2]; the
    // second send is issued at 2, has the link from 3 to 6 and delivers at 7: 1B1 [7, 11]. 1SEND_WGRAD0 [11, 14], at 15.
    const Schedule schedule = lower(parse_schedule(kTwice));
    for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
      // Under rendezvous the second send waits for its receive, at 6: [6, 9], 1B1 [10, 14], and 18 at the optimizer.
      const SimTime later = sends == Sends::kBuffered ? SimTime{0} : 3 * kSecond;
      const Simulation result = simulate(schedule, costs_of(2, {2, 4, 3}, 1), {.sends = sends});
      const std::vector<Span>& owner = result.timeline.ranks[0].spans;
      const std::vector<Span>& copy = result.timeline.ranks[1].spans;
      CHECK(copy[1].start == 4 * kSecond);           // 1F1
      CHECK(owner[2].start == 3 * kSecond + later);  // the second 0SEND_WEIGHTS1
      CHECK(owner[2].end == 7 * kSecond + later);
      CHECK(copy[4].start == 7 * kSecond + later);    // 1B1
      CHECK(copy[6].start == 11 * kSecond + later);   // 1RESHARD
      CHECK(owner[5].start == 15 * kSecond + later);  // 0OPTIMIZER_STEP
      CHECK(result.makespan == 15 * kSecond + later);
    }
  }

  TEST_CASE("a step's time by cause: weights are gathered, their gradients reduced") {
    const Schedule schedule = lower(parse_schedule(kTwice));
    const CostTable costs = costs_of(2, {2, 4, 3}, 1);
    const Sensitivity told = sensitivity_of(schedule, costs, simulate(schedule, costs).critical_path);
    // The two sends [0, 6] and the latency [6, 7], 1B1 [7, 11], 1SEND_WGRAD0 [11, 14] and its latency.
    CHECK(told.unshard == Seconds{6});
    CHECK(told.reduction == Seconds{3});
    CHECK(told.latency == Seconds{2});
    CHECK(told.bandwidth == Seconds{0});
    CHECK(told.compute_by_stage[1] == Seconds{4});
  }

  TEST_CASE("only the owner keeps state; a copy holds weights up to RESHARD, and a gradient until it has sent it") {
    const Schedule schedule = lower(parse_schedule(kTwice));
    CostTable costs = costs_of(2, {2, 4, 3}, 1);
    for (StageCosts& stage : costs.stages)
      stage.memory = {.parameter_bytes = 100, .gradient_bytes = 10, .optimizer_bytes = 1000, .forward_bytes = 1};
    const Simulation result = simulate(schedule, costs);
    // Rank 0: 1110, and one activation [0, 6]. Its receive of the gradient is issued at 6 and ends at 15.
    CHECK(result.peak_memory_bytes[0] == 1120);
    // Rank 1: weights [0, 6] and [6, 11], an activation [4, 11], a gradient from the start of 1B1 to the end of its send.
    CHECK(result.peak_memory_bytes[1] == 111);
    CHECK(result.timeline.ranks[1].memory.back().bytes == 0);
  }

  TEST_CASE("WeiPipe idles only while its ring turns: nothing with free links, and nothing more for a longer step") {
    constexpr std::array kTimes{PartTimes{2, 4, 1}, PartTimes{6, 11, 3}, PartTimes{5, 5, 2}, PartTimes{4, 9, 0}};
    for (const PartTimes& times : kTimes) {
      for (int p = 1; p <= 10; ++p) {
        for (const int rounds : {1, 2, 5}) {
          CAPTURE(p);
          CAPTURE(rounds);
          CAPTURE(times.weights);
          // Rank p-1 starts p messages behind: part 0 comes from rank 1 to rank 0 and goes round. On every second rank
          // two flows meet on the way to the first micro-batches. The last sum goes two hops on, to its owner.
          const int messages = p == 1 ? 0 : p == 2 ? 2 : 3 * (p + 1) / 2;
          CHECK(bubble_of("weipipe", {.ranks = p, .microbatches = p * rounds}, times) == messages * times.weights);
        }
      }
    }
  }

  TEST_CASE("where a message takes a whole forward, each rank of WeiPipe is a forward behind the one before") {
    // The turn by turn picture of the paper: p-1 turns pass until the last rank starts.
    for (int p = 2; p <= 8; ++p) {
      const Simulation result =
          simulate(lowered("weipipe", p, 3 * p), costs_of(p * p, {.forward = 3, .backward = 6, .weights = 3}));
      for (int r = 1; r < p; ++r) CHECK(result.first_start[r] - result.first_start[r - 1] == 3 * kSecond);
    }
  }

  TEST_CASE(
      "TawPipe idles while weights come to the first step and gradients leave the last, and by the lag of nodes") {
    constexpr std::array kTimes{PartTimes{3, 3, 1}, PartTimes{7, 7, 2}, PartTimes{4, 4, 0}};
    for (const PartTimes& times : kTimes) {
      for (const int p : {2, 3, 4, 6, 8, 9, 12}) {
        for (int node = 1; node <= p; ++node) {
          if (p % node != 0) continue;
          for (const int rounds : {1, 2, 4}) {
            CAPTURE(p);
            CAPTURE(node);
            CAPTURE(rounds);
            const int nodes = p / node;
            // A node sends its part to one other node a step, so that the third and later ones are steps behind.
            const int lag = std::max(0, nodes - 2) * times.forward;
            const int messages = nodes == 1 || node == 1 ? 2 : node == 2 ? 4 : 5;
            CHECK(bubble_of("tawpipe", {.ranks = p, .microbatches = p * rounds, .node_ranks = node}, times) ==
                  lag + messages * times.weights);
          }
        }
      }
    }
  }

  TEST_CASE("every rank holds the activations of one micro-batch") {
    for (const char* name : {"weipipe", "tawpipe"}) {
      const Simulation result = simulate(lowered(name, 4, 12), costs_of(16, {2, 4, 1}));
      CHECK(result.peak_activations == std::vector<int>{4, 4, 4, 4});
    }
  }

  TEST_CASE("a step whose weights travel has no replicas") {
    CHECK_THROWS_AS(lower(make_schedule("weipipe", {.ranks = 2, .microbatches = 2}), {.data = {.enabled = true}}),
                    ScheduleError);
  }
}

}  // namespace plumb::test
