#pragma once
// Compares an optimizer with one moment on a GPU with the CPU's: scaled gradients, and a step that is skipped.

#include <doctest/doctest.h>

#include "kernels/step_numbers.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {

/// Checks a Body, simt::SgdUpdate or LionUpdate, in bf16. on_cpu(weights, gradients, momentum, elements, optimizer).
template <class Body, class Optimizer, class OnCpu>
void check_momentum_update(const Optimizer& optimizer, const OnCpu& on_cpu) {
  constexpr std::int64_t kElements = 1003;
  Values weights = random_values(kElements, 1), gradients = random_values(kElements, 2),
         momentum = random_values(kElements, 3);
  Values master = weights, own_gradients = gradients, own_momentum = momentum;
  for (float& gradient : gradients) gradient *= 0.5F;
  on_cpu(weights.data(), gradients.data(), momentum.data(), kElements, optimizer);
  std::vector<Bf16> narrow(kElements);
  StepNumbers numbers{.gradient_factor = 0.5F};
  const auto update = [&] {
    run_on_host(Body{.weights = narrow.data(),
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

}  // namespace plumb::test
