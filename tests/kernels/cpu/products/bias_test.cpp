#include "kernels/cpu/products/bias.h"

#include <doctest/doctest.h>

#include <vector>

namespace plumb::test {

TEST_CASE("a bias is added to every row, and its gradient is the column sums added to what is there") {
  std::vector<float> y = {1, 2, 3, 4, 5, 6};
  const std::vector<float> bias = {10, 20, 30};
  bias_forward(y.data(), bias.data(), 2, 3);
  CHECK(y == std::vector<float>{11, 22, 33, 14, 25, 36});

  std::vector<float> dbias = {100, 200, 300};
  bias_backward(dbias.data(), y.data(), 2, 3);
  CHECK(dbias == std::vector<float>{125, 247, 369});
}

}  // namespace plumb::test
