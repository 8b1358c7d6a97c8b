#include "kernels/cpu/optimizers/lion.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

TEST_CASE("three Lion updates agree with a plain loop in double, and zero the gradients") {
  const Lion optimizer{.learning_rate = 0.1F, .beta1 = 0.9F, .beta2 = 0.99F, .weight_decay = 0.1F};
  Values w = random_values(33, 1), m(33, 0.0F);
  std::vector<double> expected(w.begin(), w.end()), dm(33, 0);
  for (unsigned step = 1; step <= 3; ++step) {
    Values g = random_values(33, 10 + step);
    for (std::size_t i = 0; i < 33; ++i) {
      const double blend = 0.9 * dm[i] + 0.1 * double(g[i]);
      expected[i] -= 0.1 * ((blend > 0 ? 1.0 : -1.0) + 0.1 * expected[i]);
      dm[i] = 0.99 * dm[i] + 0.01 * double(g[i]);
    }
    lion_update(w.data(), g.data(), m.data(), 33, optimizer);
    CHECK(g == Values(33, 0.0F));
  }
  for (std::size_t i = 0; i < 33; ++i) CHECK(w[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("Lion leaves a parameter without gradient and momentum where it is") {
  Values w = {2.0F}, g = {0.0F}, m = {0.0F};
  lion_update(w.data(), g.data(), m.data(), 1, {.weight_decay = 0.0F});
  CHECK(w[0] == 2.0F);
}

}  // namespace plumb::test
