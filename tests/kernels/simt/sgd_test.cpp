#include "kernels/simt/sgd.h"

#include <doctest/doctest.h>

#include "kernels/cpu/sgd.h"
#include "tests/kernels/simt/stored.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("GPU Sgd agrees with the CPU's on scaled gradients, and leaves a skipped step's weights") {
  constexpr std::int64_t kElements = 1003;
  const Sgd optimizer{.learning_rate = 0.01F, .weight_decay = 0.2F};
  Values weights = random_values(kElements, 1), gradients = random_values(kElements, 2),
         momentum = random_values(kElements, 3);
  Values master = weights, own_gradients = gradients, own_momentum = momentum;
  for (float& gradient : gradients) gradient *= 0.5F;
  sgd_update(weights.data(), gradients.data(), momentum.data(), kElements, optimizer);
  std::vector<Bf16> narrow(kElements);
  StepNumbers numbers{.gradient_factor = 0.5F};
  const auto update = [&] {
    run_on_host(simt::SgdUpdate<Bf16, float>{.weights = narrow.data(),
                                             .master = master.data(),
                                             .gradients = own_gradients.data(),
                                             .momentum = own_momentum.data(),
                                             .elements = kElements,
                                             .optimizer = optimizer,
                                             .numbers = &numbers},
                kBlocks, kLanes);
  };
  update();
  CHECK(relative_difference(master, weights) < 1e-5);
  CHECK(relative_difference(own_momentum, momentum) < 1e-5);
  CHECK(own_gradients == Values(kElements, 0.0F));
  CHECK(widened_all(narrow) == widened_all(stored<Bf16>(master)));

  numbers.skips = 1;
  own_gradients = random_values(kElements, 4);
  const Values before = master;
  update();
  CHECK(master == before);
  CHECK(own_gradients == Values(kElements, 0.0F));
}
