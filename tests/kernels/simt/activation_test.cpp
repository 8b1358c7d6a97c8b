#include "kernels/simt/activation.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_activations(bool exact) {
  constexpr ActivationSize kSize{.rows = 5, .columns = 83};
  constexpr std::int64_t kElements = kSize.rows * kSize.columns;
  const std::vector<S> x = stored<S>(random_values(kElements, 1, 4.0F)), dy = stored<S>(random_values(kElements, 2));
  Values y(kElements), slope = widened_all(x);
  gelu_forward(y.data(), widened_all(x).data(), kSize, exact);
  gelu_backward(slope.data(), widened_all(dy).data(), kSize, exact);
  std::vector<S> own_y(kElements), own_slope = x;
  run_on_host(simt::GeluForward<S>{own_y.data(), x.data(), kElements, exact}, kBlocks, kLanes);
  run_on_host(simt::GeluBackward<S>{own_slope.data(), dy.data(), kElements, exact}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_y), y) < tolerance<S>());
  CHECK(relative_difference(widened_all(own_slope), slope) < tolerance<S>());

  std::vector<S> gate_up = stored<S>(random_values(2 * kElements, 3, 4.0F));
  Values gradient = widened_all(gate_up);
  swiglu_forward(y.data(), gradient.data(), kSize);
  run_on_host(simt::SwigluForward<S>{own_y.data(), gate_up.data(), kSize}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_y), y) < tolerance<S>());
  swiglu_backward(gradient.data(), widened_all(dy).data(), kSize);
  run_on_host(simt::SwigluBackward<S>{gate_up.data(), dy.data(), kSize}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(gate_up), gradient) < tolerance<S>());
}

}  // namespace

TEST_CASE("GPU activations agree with the CPU's") {
  for (const bool exact : {false, true}) {
    CAPTURE(exact);
    check_activations<float>(exact);
    check_activations<Bf16>(exact);
    check_activations<Fp16>(exact);
  }
}

}  // namespace plumb::test
