#include "kernels/cpu/optimizers/adamw.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

TEST_CASE("two AdamW updates agree with the paper's recurrence in double, and zero the gradients") {
  const AdamW optimizer{.learning_rate = 0.01F, .beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-8F, .weight_decay = 0.1F};
  Values w = random_values(33, 1), m(33, 0.0F), v(33, 0.0F);
  std::vector<double> expected(w.begin(), w.end()), dm(33, 0), dv(33, 0);
  for (int step = 1; step <= 2; ++step) {
    Values g = random_values(33, 10 + step);
    for (int i = 0; i < 33; ++i) {
      const double gradient = double(g[i]);
      dm[i] = 0.9 * dm[i] + 0.1 * gradient;
      dv[i] = 0.95 * dv[i] + 0.05 * gradient * gradient;
      const double direction =
          dm[i] / (1 - std::pow(0.9, step)) / (std::sqrt(dv[i] / (1 - std::pow(0.95, step))) + 1e-8);
      expected[i] -= 0.01 * (direction + 0.1 * expected[i]);
    }
    adamw_update(w.data(), g.data(), m.data(), v.data(), 33, optimizer, step);
    CHECK(g == Values(33, 0.0F));
  }
  for (int i = 0; i < 33; ++i) CHECK(w[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("the first AdamW update moves every parameter by the learning rate against its gradient") {
  // m / (1 - b1) = g and v / (1 - b2) = g^2: the direction is the sign of g whatever its size.
  Values w(3, 0.0F), g = {1e-3F, -5.0F, 100.0F}, m(3, 0.0F), v(3, 0.0F);
  adamw_update(w.data(), g.data(), m.data(), v.data(), 3, {.learning_rate = 0.5F, .weight_decay = 0.0F}, 1);
  CHECK(w[0] == doctest::Approx(-0.5F).epsilon(1e-4));
  CHECK(w[1] == doctest::Approx(0.5F).epsilon(1e-4));
  CHECK(w[2] == doctest::Approx(-0.5F).epsilon(1e-4));
}

}  // namespace plumb::test
