#include "kernels/cpu/activation.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {
constexpr ActivationSize kActivationSize{.rows = 3, .columns = 19};
constexpr std::int64_t kActivationElements = kActivationSize.rows * kActivationSize.columns;
}  // namespace

TEST_CASE("GELU has its known values at 0, 1 and -1") {
  const Values x = {0.0F, 1.0F, -1.0F};
  Values y(3);
  gelu_forward(y.data(), x.data(), {1, 3}, true);
  CHECK(y[0] == 0.0F);
  CHECK(y[1] == doctest::Approx(0.8413447));   // Phi(1)
  CHECK(y[2] == doctest::Approx(-0.1586553));  // -Phi(-1)
  gelu_forward(y.data(), x.data(), {1, 3}, false);
  CHECK(y[1] == doctest::Approx(0.8411920));  // 0.5 (1 + tanh(sqrt(2/pi) 1.044715))
  CHECK(y[2] == doctest::Approx(-0.1588080));
}

TEST_CASE("the gradients of both GELUs agree with finite differences") {
  for (const bool exact : {false, true}) {
    Values x = random_values(kActivationElements, 1, 3.0F), dx = x;
    const Values dy = random_values(kActivationElements, 2);
    gelu_backward(dx.data(), dy.data(), kActivationSize, exact);
    const auto objective = [&] {
      Values y(kActivationElements);
      gelu_forward(y.data(), x.data(), kActivationSize, exact);
      return weighted_sum(dy, y);
    };
    CHECK(gradient_error(x, dx, objective) < kGradientTolerance);
  }
}

TEST_CASE("the gradient of SwiGLU agrees with finite differences") {
  Values gate_up = random_values(2 * kActivationElements, 1, 3.0F), gradient = gate_up;
  const Values dy = random_values(kActivationElements, 2);
  swiglu_backward(gradient.data(), dy.data(), kActivationSize);
  const auto objective = [&] {
    Values y(kActivationElements);
    swiglu_forward(y.data(), gate_up.data(), kActivationSize);
    return weighted_sum(dy, y);
  };
  CHECK(gradient_error(gate_up, gradient, objective) < kGradientTolerance);
}

TEST_CASE("activations and their gradients are finite for inputs of any size") {
  const Values x = {-200.0F, -30.0F, 30.0F, 200.0F}, dy(4, 1.0F);
  for (const bool exact : {false, true}) {
    Values y(4), dx = x;
    gelu_forward(y.data(), x.data(), {1, 4}, exact);
    gelu_backward(dx.data(), dy.data(), {1, 4}, exact);
    for (int i = 0; i < 4; ++i) CHECK((std::isfinite(y[i]) && std::isfinite(dx[i])));
  }
  Values gate_up = {-200.0F, 200.0F, 1.0F, 1.0F};
  swiglu_backward(gate_up.data(), dy.data(), {1, 2});
  for (const float value : gate_up) CHECK(std::isfinite(value));
}

}  // namespace plumb::test
