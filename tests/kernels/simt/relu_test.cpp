#include "kernels/simt/relu.h"

#include <doctest/doctest.h>

#include "kernels/cpu/products/bias.h"
#include "kernels/cpu/relu.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_relu(bool has_bias, std::int64_t rows, std::int64_t columns) {
  const std::int64_t elements = rows * columns;
  std::vector<S> own = stored<S>(random_values(elements, 1)), own_dy = stored<S>(random_values(elements, 2));
  const Values bias = random_values(columns, 3);
  Values x = widened_all(own), dy = widened_all(own_dy);
  std::vector<std::uint32_t> mask(relu_mask_words(elements));
  if (has_bias) bias_forward(x.data(), bias.data(), rows, columns);
  relu_forward(x.data(), mask.data(), elements);
  relu_backward(dy.data(), mask.data(), elements);

  std::vector<std::uint8_t> own_mask(simt::relu_mask_bytes(elements), 0xff);
  run_on_host(simt::ReluForward<S>{own.data(), own_mask.data(), has_bias ? bias.data() : nullptr, rows, columns},
              kBlocks, kLanes);
  run_on_host(simt::ReluBackward<S>{own_dy.data(), own_mask.data(), elements}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own), x) < tolerance<S>());
  CHECK(widened_all(own_dy) == dy);
}

}  // namespace

TEST_CASE("GPU ReLU behind a bias agrees with the CPU's, and its mask with which elements passed") {
  for (const bool has_bias : {true, false}) {
    check_relu<float>(has_bias, 7, 13);
    check_relu<float>(has_bias, 16, 32);
    check_relu<Bf16>(has_bias, 5, 11);
    check_relu<Fp16>(has_bias, 1, 3);
  }
}

}  // namespace plumb::test
