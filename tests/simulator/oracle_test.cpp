// Answers of other simulators (the figures are theirs; the schedules and costs below are their inputs).

#include <doctest/doctest.h>

#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

struct Hop {
  double latency_s;
  double bytes_per_second;
  std::int64_t bytes;
};

double one_f_one_b_seconds(int ranks, int microbatches, double forward_s, double backward_s, const Hop& hop,
                           Sends sends) {
  CostTable costs = whole_costs(ranks, forward_s, backward_s);
  costs.default_link = {.latency = Seconds{hop.latency_s}, .bytes_per_second = hop.bytes_per_second};
  for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = hop.bytes;
  return to_seconds(
             simulate(lowered("1f1b", ranks, microbatches), costs, {.sends = sends, .record_timeline = false}).makespan)
      .count();
}

}  // namespace

TEST_SUITE("oracle") {
  // SimGrid 3.32 (CM02, TCP-gamma 0, no cross-traffic). Both send modes give its answer: lowering posts each receive
  // one compute action ahead of its consumer, and here no receive is issued after its send, so that a rendezvous waits
  // for none.
  TEST_CASE("1F1B over links of 1e9 B/s and 0.5 ms takes what SimGrid computes") {
    const Hop hop{.latency_s = 0.5e-3, .bytes_per_second = 1e9, .bytes = 500'000};
    for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
      CHECK(one_f_one_b_seconds(8, 64, 1, 2, hop, sends) == doctest::Approx(213.124).epsilon(1e-6));  // printed to 1 ms
      CHECK(one_f_one_b_seconds(64, 512, 1, 2, hop, sends) == doctest::Approx(1726.132).epsilon(1e-6));
    }
  }

  TEST_CASE("1F1B over a ring of 50 GiB/s and 500 ns takes what ASTRA-sim computes") {
    const Hop hop{.latency_s = 500e-9, .bytes_per_second = 50.0 * (1 << 30), .bytes = 16 << 20};
    for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
      CHECK(one_f_one_b_seconds(8, 16, 1e-3, 2e-3, hop, sends) ==
            doctest::Approx(81'520'000e-9).epsilon(1e-9));  // whole ns
      CHECK(one_f_one_b_seconds(16, 64, 1e-3, 2e-3, hop, sends) == doctest::Approx(283'324'000e-9).epsilon(1e-9));
    }
  }
}

}  // namespace plumb::test
