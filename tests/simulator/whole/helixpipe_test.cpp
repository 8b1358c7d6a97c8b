// HelixPipe waits for the parts of a layer around attention, and for no attention, however long it takes.

#include <array>

#include <doctest/doctest.h>

#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

/// Seconds of what a rank does for a micro-batch. `ahead` and `behind` are the products ahead of an attention and
/// behind the one before. Their backward takes `backward` times as long, that of attention `attention_backward` times.
struct LayerTimes {
  int ahead = 1, behind = 2, attention = 1, backward = 2, attention_backward = 1;
};

CostTable costs_of(const Schedule& schedule, const LayerTimes& times) {
  const int last = std::ranges::max(schedule.stages, {}, &StagePlace::model_part).model_part;
  ChunkCosts costs{.forward = {}, .input_grad = {}, .weight_grad = {}, .backward = {}};
  for (const StagePlace& place : schedule.stages) {
    const bool is_attention = place.model_part % 2 == 1;
    const int products = (place.model_part < last ? times.ahead : 0) + (place.model_part > 0 ? times.behind : 0);
    costs.forward.emplace_back(is_attention ? times.attention : products);
    costs.input_grad.emplace_back(times.attention_backward * times.attention);
    costs.weight_grad.emplace_back(0);
    costs.backward.emplace_back(times.backward * products);
  }
  return chunk_cost_table(stage_count(schedule), costs);
}

constexpr std::array kTimes{LayerTimes{}, LayerTimes{.attention = 6}, LayerTimes{3, 3, 20, 3, 2},
                            LayerTimes{.ahead = 5, .behind = 1, .attention = 0}};

}  // namespace

TEST_SUITE("property") {
  TEST_CASE("HelixPipe idles for p-1 times the forward and backward between two attentions where m = p") {
    for (const LayerTimes& times : kTimes)
      for (int p = 1; p <= 6; ++p)
        for (int v = 1; v <= 3; ++v) {
          INFO("p=", p, " v=", v, " attention=", times.attention);
          const Schedule schedule = lowered("helixpipe", p, p, v);
          const Simulation result = simulate(schedule, costs_of(schedule, times));
          const int between = (times.ahead + times.behind) * (1 + times.backward);
          for (int r = 0; r < p; ++r) CHECK(result.makespan - result.busy[r] == (p - 1) * between * kSecond);
        }
  }

  TEST_CASE("HelixPipe's rounds of 2p micro-batches follow each other without a gap") {
    for (const LayerTimes& times : kTimes)
      for (int p = 1; p <= 5; ++p)
        for (int v = 1; v <= 2; ++v) {
          SimTime of_one_round{0};
          for (int rounds = 1; rounds <= 3; ++rounds) {
            INFO("p=", p, " v=", v, " rounds=", rounds, " attention=", times.attention);
            const Schedule schedule = lowered("helixpipe", p, 2 * p * rounds, v);
            const Simulation result = simulate(schedule, costs_of(schedule, times));
            const int between = (times.ahead + times.behind) * (1 + times.backward);
            const SimTime idle = result.makespan - result.busy[0];
            CHECK(idle <= 2 * (p - 1) * between * kSecond);
            if (rounds == 1) of_one_round = idle;
            CHECK(idle == of_one_round);
          }
        }
  }

  TEST_CASE("HelixPipe holds as many activations on every rank, those of the model's end besides on rank 0") {
    for (int p = 1; p <= 4; ++p)
      for (int v = 1; v <= 2; ++v)
        for (int m = 1; m <= 2 * p + 1; ++m) {
          INFO("p=", p, " v=", v, " m=", m);
          const Schedule schedule = lowered("helixpipe", p, m, v);
          const Simulation result = simulate(schedule, costs_of(schedule, {}));
          for (int r = 0; r < p; ++r) CHECK(result.peak_activations[r] == 2 * m * v + (r == 0 ? m : 0));
        }
  }

  TEST_CASE("the second micro-batch of a place hides the messages of the first") {
    // Four ranks, messages of 1 s, attention of 6 s: a round of p micro-batches waits for messages layer by layer.
    const auto idle = [](int m, double hop) {
      const Schedule schedule = lowered("helixpipe", 4, m, 4);
      CostTable costs = costs_of(schedule, {.attention = 6});
      costs.default_link.latency = Seconds{hop};
      const Simulation result = simulate(schedule, costs);
      return result.makespan - result.busy[0];
    };
    CHECK(idle(8, 1) - idle(8, 0) < (idle(4, 1) - idle(4, 0)) / 4);
  }
}

}  // namespace plumb::test
