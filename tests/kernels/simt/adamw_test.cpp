#include "kernels/simt/adamw.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kernels/cpu/adamw.h"
#include "tests/kernels/simt/stored.h"

using namespace plumb;
using namespace plumb::test;

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
  run_on_host(simt::AdamWUpdate<Bf16, float>{.weights = narrow.data(),
                                             .master = master.data(),
                                             .gradients = own_gradients.data(),
                                             .first_moment = own_first.data(),
                                             .second_moment = own_second.data(),
                                             .elements = kElements,
                                             .optimizer = optimizer,
                                             .first_correction = 1.0F - std::pow(optimizer.beta1, float(kStep)),
                                             .second_correction = 1.0F - std::pow(optimizer.beta2, float(kStep)),
                                             .gradient_scale = 0.5F},
              kBlocks, kLanes);
  CHECK(relative_difference(master, weights) < 1e-5);
  CHECK(relative_difference(own_first, first) < 1e-5);
  CHECK(relative_difference(own_second, second) < 1e-5);
  CHECK(own_gradients == Values(kElements, 0.0F));
  CHECK(widened_all(narrow) == widened_all(stored<Bf16>(master)));
}

TEST_CASE("GPU sums of squares: any number of lanes, and an overflow shows") {
  constexpr std::int64_t kElements = 1003;
  Values x = random_values(kElements, 1);
  double expected = 0;
  for (const float value : x) expected += double(value) * double(value);
  for (const int lanes : {1, 32, 128}) {
    Values partial(kBlocks);
    run_on_host(simt::SumOfSquares<float>{partial.data(), x.data(), kElements}, kBlocks, lanes);
    double sum = 0;
    for (const float part : partial) sum += double(part);
    CHECK(sum == doctest::Approx(expected).epsilon(1e-6));
  }
  x[500] = INFINITY;
  Values partial(kBlocks);
  run_on_host(simt::SumOfSquares<float>{partial.data(), x.data(), kElements}, kBlocks, kLanes);
  CHECK(!std::isfinite(partial[0] + partial[1] + partial[2]));
}
