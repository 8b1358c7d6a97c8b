#include "kernels/cpu/losses/squared_error.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

TEST_CASE("the squared error is the mean over a row, summed over rows, and its gradient stands in its place") {
  Values y = {1, 2, 3, -1, 0, 4};
  const Values targets = {0, 2, 5, -1, 3, 4};
  // The rows' losses are (1 + 0 + 4) / 3 and (0 + 9 + 0) / 3; the gradients are 2 (y - t) / 3, here at a scale of 0.5.
  CHECK(squared_error(y.data(), targets.data(), 2, 3, 0.5F) == doctest::Approx(14.0 / 3));
  const Values expected = {1.0F / 3, 0, -2.0F / 3, 0, -1, 0};
  CHECK(relative_difference(y, expected) < 1e-6);
}

}  // namespace plumb::test
