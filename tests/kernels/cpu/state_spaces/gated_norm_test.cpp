#include "kernels/cpu/state_spaces/gated_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

constexpr GatedNormSize kGated{.rows = 3, .columns = 6, .groups = 2, .stride = 8};

TEST_CASE("each group of channels is gated and normed by itself") {
  const Values y = random_values(18, 1), z = random_values(24, 2), gain = random_values(6, 3);
  Values out(18), rstd(6);
  gated_norm_forward(out.data(), rstd.data(), y.data(), z.data(), gain.data(), kGated, 1e-5F);
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t group = 0; group < 2; ++group) {
      const auto gated = [&](std::size_t c) {
        const double gate = z[row * 8 + c];
        return y[row * 6 + c] * gate / (1 + std::exp(-gate));
      };
      double squares = 0;
      for (std::size_t c = group * 3; c < group * 3 + 3; ++c) squares += gated(c) * gated(c);
      for (std::size_t c = group * 3; c < group * 3 + 3; ++c)
        CHECK(out[row * 6 + c] == doctest::Approx(gated(c) * gain[c] / std::sqrt(squares / 3 + 1e-5)).epsilon(1e-5));
    }
}

TEST_CASE("the gradients of a gated norm are those of finite differences") {
  Values y = random_values(18, 1), z = random_values(24, 2), gain = random_values(6, 3);
  const Values dout = random_values(18, 4);
  Values out(18), rstd(6);
  const auto objective = [&] {
    gated_norm_forward(out.data(), rstd.data(), y.data(), z.data(), gain.data(), kGated, 1e-2F);
    return weighted_sum(dout, out);
  };
  objective();
  Values dy = dout, dz = z, dgain(6);
  gated_norm_backward(dy.data(), dz.data(), dgain.data(), dy.data(), y.data(), rstd.data(), gain.data(), kGated);
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t c = 6; c < 8; ++c) {
      CHECK(dz[row * 8 + c] == z[row * 8 + c]);  // columns of others keep what they have
      dz[row * 8 + c] = 0;
    }
  constexpr float kSmallStep = 1e-3F;  // the norm of three channels bends much
  CHECK(gradient_error(y, dy, objective, kSmallStep) < kGradientTolerance);
  CHECK(gradient_error(z, dz, objective, kSmallStep) < kGradientTolerance);
  CHECK(gradient_error(gain, dgain, objective) < kGradientTolerance);
}

}  // namespace plumb::test
