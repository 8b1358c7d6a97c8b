#include "kernels/cpu/residual.h"

#include <doctest/doctest.h>

#include <vector>

namespace plumb::test {

TEST_CASE("a residual is the sum of both, also in place") {
  const std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> y = {10, 20, 30, 40};
  residual_add(y.data(), x.data(), y.data(), 2, 2);
  CHECK(y == std::vector<float>{11, 22, 33, 44});
}

}  // namespace plumb::test
