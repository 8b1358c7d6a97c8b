#include "kernels/simt/experts/expert_routes.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

/// Returns picks for each token, no expert twice; half of the tokens pick expert 0 first.
Integers random_picks(const PickRouting& size, unsigned seed) {
  std::mt19937 random(seed);
  Integers picks, experts(static_cast<std::size_t>(size.experts));
  for (std::size_t e = 0; e < experts.size(); ++e) experts[e] = static_cast<std::int32_t>(e);
  for (std::int64_t token = 0; token < size.tokens(); ++token) {
    std::shuffle(experts.begin() + (token % 2), experts.end(), random);
    if (token % 2 == 1) std::iter_swap(experts.begin(), std::ranges::find(experts, 0));
    picks.insert(picks.end(), experts.begin(), experts.begin() + static_cast<std::ptrdiff_t>(size.picks));
  }
  return picks;
}

struct Routes {
  Integers places, bounds, loads;
};

/// Places one pick after the other.
Routes one_by_one(const PickRouting& size, const Integers& picks) {
  const auto experts = static_cast<std::size_t>(size.experts), sequences = static_cast<std::size_t>(size.sequences);
  Routes routes{.places = Integers(picks.size(), -2), .bounds = {0}, .loads = Integers(sequences * experts)};
  std::int32_t row = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    for (std::size_t i = 0; i < picks.size(); ++i) {
      if (picks[i] != static_cast<std::int32_t>(e)) continue;
      std::int32_t& load = routes.loads[i / (picks.size() / sequences) * experts + e];
      routes.places[i] = load++ < size.capacity ? row++ : -1;
    }
    routes.bounds.push_back(row);
  }
  return routes;
}

}  // namespace

TEST_CASE("GPU picks find their rows as one by one, the first of a sequence where an expert is full") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  for (const std::int64_t capacity : {1, 5, 100})
    for (const int lanes : {1, 8, 64}) {
      const PickRouting size{.sequences = 3, .sequence = 13, .experts = 7, .picks = 2, .capacity = capacity};
      const Integers picks = random_picks(size, seed);
      const Routes expected = one_by_one(size, picks);
      Routes own{.places = Integers(picks.size(), -2), .bounds = Integers(8, -2), .loads = Integers(21, -2)};
      run_on_host(simt::CountPicks{own.loads.data(), picks.data(), size}, kBlocks, lanes);
      run_on_host(simt::PlacePicks{own.places.data(), own.bounds.data(), picks.data(), own.loads.data(), size}, kBlocks,
                  lanes);
      CHECK(own.loads == expected.loads);
      CHECK(own.places == expected.places);
      CHECK(own.bounds == expected.bounds);
    }
}

TEST_CASE("GPU picks of slices of sequences find room where those of the slices before have left it") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  constexpr std::size_t kSequences = 3, kExperts = 7, kPicks = 2, kLists = kSequences * kExperts;
  const std::vector<std::int64_t> slices = {4, 6, 3};
  for (const std::int64_t capacity : {1, 3, 5, 100}) {
    const PickRouting whole{
        .sequences = kSequences, .sequence = 13, .experts = kExperts, .picks = kPicks, .capacity = capacity};
    const Integers picks = random_picks(whole, seed);
    const Routes expected = one_by_one(whole, picks);
    Integers all(slices.size() * kLists, -2), before(kLists, -2);
    std::size_t first = 0;
    for (std::size_t slice = 0; slice < slices.size(); ++slice) {
      PickRouting size = whole;
      size.sequence = slices[slice];
      const auto count = static_cast<std::size_t>(size.sequence) * kPicks;
      Integers own, expected_places;
      for (std::size_t sequence = 0; sequence < kSequences; ++sequence)
        for (std::size_t i = 0; i < count; ++i) {
          own.push_back(picks[sequence * 13 * kPicks + first + i]);
          expected_places.push_back(expected.places[sequence * 13 * kPicks + first + i]);
        }
      first += count;
      Routes made{.places = Integers(own.size(), -2), .bounds = Integers(kExperts + 1, -2)};
      std::int32_t* const loads = all.data() + slice * kLists;
      run_on_host(simt::SumLoads{before.data(), all.data(), static_cast<std::int64_t>(slice), kLists}, kBlocks, 8);
      run_on_host(simt::CountPicks{loads, own.data(), size}, kBlocks, 8);
      run_on_host(simt::PlacePicks{made.places.data(), made.bounds.data(), own.data(), loads, size, before.data()},
                  kBlocks, 8);
      // The slice keeps the picks that whole sequences keep. An expert's rows, one behind the other, are the slice's
      // own.
      std::vector<bool> has_row(static_cast<std::size_t>(made.bounds.back()), false);
      for (std::size_t i = 0; i < own.size(); ++i) {
        CHECK((made.places[i] < 0) == (expected_places[i] < 0));
        if (made.places[i] < 0) continue;
        const auto row = static_cast<std::size_t>(made.places[i]), expert = static_cast<std::size_t>(own[i]);
        CHECK(made.places[i] >= made.bounds[expert]);
        CHECK(made.places[i] < made.bounds[expert + 1]);
        CHECK(!has_row[row]);
        has_row[row] = true;
      }
      CHECK(std::ranges::count(has_row, false) == 0);
    }
    run_on_host(simt::SumLoads{before.data(), all.data(), static_cast<std::int64_t>(slices.size()), kLists}, kBlocks,
                8);
    CHECK(before == expected.loads);
  }
}

TEST_CASE("a GPU's load-balancing loss and its gradient are those of the picks' shares") {
  const PickRouting size{.sequences = 2, .sequence = 5, .experts = 6, .picks = 2, .capacity = 9};
  const Integers picks = random_picks(size, 5), loads = one_by_one(size, picks).loads;
  const Values probabilities = random_values(10 * 6, 1);
  const float loss_scale = 4;
  Values losses(10), added(12);
  run_on_host(
      simt::BalanceLoss{losses.data(), added.data(), probabilities.data(), loads.data(), size, 0.3F, 0.5F, &loss_scale},
      kBlocks, 8);
  for (std::size_t t = 0; t < 10; ++t) {
    double loss = 0;
    for (std::size_t e = 0; e < 6; ++e) loss += 0.3 * loads[t / 5 * 6 + e] * probabilities[t * 6 + e];
    CHECK(losses[t] == doctest::Approx(loss).epsilon(1e-5));
  }
  for (std::size_t i = 0; i < 12; ++i) CHECK(added[i] == doctest::Approx(0.5 * 4 * 0.3 * loads[i]));
}

template <class S>
void check_weighed_picks(bool has_biases) {
  const Integers places = {3, -1, 0, 2};  // four picks; row 1 belongs to none
  const Integers bounds = {0, 3, 4}, experts = {0, 0, 0, 1};
  const Values weights = random_values(4, 1);
  const std::vector<S> activation = stored<S>(random_values(4 * 5, 2)), gradient = stored<S>(random_values(4 * 5, 3)),
                       output = stored<S>(random_values(4 * 9, 4)), biases = stored<S>(random_values(2 * 9, 5));
  std::vector<S> own_gradient = gradient, own_output = output;
  Values weight_gradients(4, -1);
  simt::WeighPicks<S> body{weight_gradients.data(),
                           own_gradient.data(),
                           own_output.data(),
                           activation.data(),
                           weights.data(),
                           places.data(),
                           4,
                           5,
                           9,
                           nullptr,
                           {}};
  if (has_biases) {
    body.biases = biases.data();
    body.rows = {.bounds = bounds.data(), .rows = 4, .experts = 2};
  }
  run_on_host(body, kBlocks, 8);
  Values expected_gradient = widened_all(gradient), expected_output = widened_all(output), expected(4, 0);
  for (std::size_t pick = 0; pick < 4; ++pick) {
    if (places[pick] < 0) continue;
    const auto row = static_cast<std::size_t>(places[pick]), expert = static_cast<std::size_t>(experts[row]);
    for (std::size_t c = row * 5; c < row * 5 + 5; ++c) {
      expected[pick] += expected_gradient[c] * widened(activation[c]);
      expected_gradient[c] *= weights[pick];
    }
    for (std::size_t c = 0; c < 9; ++c) {
      if (has_biases) expected[pick] += expected_output[row * 9 + c] * widened(biases[expert * 9 + c]);
      expected_output[row * 9 + c] *= weights[pick];
    }
  }
  CHECK(relative_difference(weight_gradients, expected) < kFloatTolerance);
  CHECK(weight_gradients[1] == 0);
  CHECK(relative_difference(widened_all(own_gradient), expected_gradient) < tolerance<S>());
  CHECK(relative_difference(widened_all(own_output), expected_output) < tolerance<S>());
}

TEST_CASE_TEMPLATE("GPU picks' gradients are weighed, and what they weigh has one, dropped ones none", S, float, Bf16,
                   Fp16) {
  check_weighed_picks<S>(false);
  check_weighed_picks<S>(true);  // the expert's bias is weighed, too
}

}  // namespace plumb::test
