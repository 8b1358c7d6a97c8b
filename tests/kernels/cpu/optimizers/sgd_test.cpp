#include "kernels/cpu/optimizers/sgd.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

TEST_CASE("three momentum updates agree with a plain loop in double, and zero the gradients") {
  const Sgd optimizer{.learning_rate = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F};
  Values w = random_values(33, 1), m(33, 0.0F);
  std::vector<double> expected(w.begin(), w.end()), dm(33, 0);
  for (unsigned step = 1; step <= 3; ++step) {
    Values g = random_values(33, 10 + step);
    for (std::size_t i = 0; i < 33; ++i) {
      dm[i] = 0.9 * dm[i] + double(g[i]) + 0.01 * expected[i];
      expected[i] -= 0.1 * dm[i];
    }
    sgd_update(w.data(), g.data(), m.data(), 33, optimizer);
    CHECK(g == Values(33, 0.0F));
  }
  for (std::size_t i = 0; i < 33; ++i) CHECK(w[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

}  // namespace plumb::test
