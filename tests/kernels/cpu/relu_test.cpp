#include "kernels/cpu/relu.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

TEST_CASE("a ReLU and its gradient pass what is above 0, for counts that fill no word") {
  for (const std::int64_t count : {1, 31, 32, 33, 77}) {
    const Values x = random_values(count, 1), dy = random_values(count, 2);
    Values y = x, dx = dy;
    std::vector<std::uint32_t> mask(static_cast<std::size_t>(relu_mask_words(count)));
    relu_forward(y.data(), mask.data(), count);
    relu_backward(dx.data(), mask.data(), count);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(y[i] == (x[i] > 0 ? x[i] : 0.0F));
      CHECK(dx[i] == (x[i] > 0 ? dy[i] : 0.0F));
    }
  }
}

}  // namespace plumb::test
