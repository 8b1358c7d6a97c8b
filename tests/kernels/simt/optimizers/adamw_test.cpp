#include "kernels/simt/optimizers/adamw.h"

#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "kernels/cpu/optimizers/adamw.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE("GPU AdamW with a gradient scale agrees with the CPU's on scaled gradients") {
  constexpr std::int64_t kElements = 1003;
  constexpr std::int64_t kStep = 3;
  const AdamW optimizer{.learning_rate = 0.01F};
  Values weights = random_values(kElements, 1), gradients = random_values(kElements, 2),
         first = random_values(kElements, 3), second = random_values(kElements, 4, 0.5F);
  for (float& value : second) value = std::abs(value);
  Values master = weights, own_gradients = gradients, own_first = first, own_second = second;
  for (float& gradient : gradients) gradient *= 0.5F;
  adamw_update(weights.data(), gradients.data(), first.data(), second.data(), kElements, optimizer, kStep);
  std::vector<Bf16> narrow(kElements);
  StepNumbers numbers{.first_correction = 1.0F - std::pow(optimizer.beta1, float(kStep)),
                      .second_correction = 1.0F - std::pow(optimizer.beta2, float(kStep)),
                      .gradient_factor = 0.5F};
  run_on_host(simt::AdamWUpdate<Bf16, float>{.weights = narrow.data(),
                                             .master = master.data(),
                                             .gradients = own_gradients.data(),
                                             .first_moment = own_first.data(),
                                             .second_moment = own_second.data(),
                                             .elements = kElements,
                                             .optimizer = optimizer,
                                             .numbers = &numbers},
              kBlocks, kLanes);
  CHECK(relative_difference(master, weights) < 1e-5);
  CHECK(relative_difference(own_first, first) < 1e-5);
  CHECK(relative_difference(own_second, second) < 1e-5);
  CHECK(own_gradients == Values(kElements, 0.0F));
  CHECK(widened_all(narrow) == widened_all(stored<Bf16>(master)));
}

TEST_CASE("GPU sums of squares: any number of lanes, and an overflow shows") {
  constexpr std::int64_t kElements = 1003, kPieces = 7;
  Values x = random_values(kElements, 1);
  double expected = 0;
  for (const float value : x) expected += double(value) * double(value);
  for (const int lanes : {1, 32, 128}) {
    Values partial(kPieces);
    run_on_host(simt::SumOfSquares<float>{partial.data(), x.data(), kElements, kPieces}, kBlocks, lanes);
    double sum = 0;
    for (const float part : partial) sum += double(part);
    CHECK(sum == doctest::Approx(expected).epsilon(1e-6));
  }
  const auto sum_of = [&](float limit) {
    Values partial(kPieces);
    run_on_host(simt::SumOfSquares<float>{partial.data(), x.data(), kElements, kPieces, limit}, kBlocks, kLanes);
    return std::accumulate(partial.begin(), partial.end(), 0.0F);
  };
  CHECK(std::isfinite(sum_of(1)));
  CHECK(!std::isfinite(sum_of(0.5F)));
  x[500] = INFINITY;
  CHECK(!std::isfinite(sum_of(INFINITY)));
  x[500] = NAN;
  CHECK(!std::isfinite(sum_of(INFINITY)));
}

TEST_CASE("a GPU's step clips by the global norm, takes the loss scale out, and is skipped by an overflow") {
  Values partials = {9.0F, 16.0F, 0.0F};  // a norm of 5, or of 1.25 if losses are scaled by 4
  const auto decided = [&](float loss_scale, float clip_norm) {
    StepNumbers numbers{.loss_scale = loss_scale};
    run_on_host(simt::StepDecision{&numbers, partials.data(), 3, clip_norm}, 1, kLanes);
    return numbers;
  };
  CHECK(decided(1, 0).gradient_factor == 1);
  CHECK(decided(1, 10).gradient_factor == 1);
  CHECK(decided(1, 2.5F).gradient_factor == 0.5F);
  CHECK(decided(4, 10).gradient_factor == 0.25F);
  CHECK(decided(4, 0.625F).gradient_factor == 0.125F);
  CHECK(decided(1, 0).square_sum == 25);
  CHECK(decided(1, 0).skips == 0);
  partials[1] = NAN;
  CHECK(decided(1, 1).skips == 1);
  partials[1] = INFINITY;
  CHECK(decided(1, 1).skips == 1);
}

TEST_CASE("a GPU's skipped step zeroes the gradients and nothing else") {
  Values weights(5, 1.0F), gradients(5, NAN), first(5, 2.0F), second(5, 3.0F);
  const StepNumbers numbers{.gradient_factor = 0, .skips = 1};
  run_on_host(simt::AdamWUpdate<float, float>{weights.data(), weights.data(), gradients.data(), first.data(),
                                              second.data(), 5, AdamW{}, &numbers},
              kBlocks, 32);
  CHECK(weights == Values(5, 1.0F));
  CHECK(gradients == Values(5, 0.0F));
  CHECK(first == Values(5, 2.0F));
  CHECK(second == Values(5, 3.0F));
}

}  // namespace plumb::test
