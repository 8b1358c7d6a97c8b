#include "kernels/cpu/norm.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

constexpr NormSize kSize{.rows = 3, .columns = 37};
constexpr std::int64_t kElements = kSize.rows * kSize.columns;
constexpr float kEpsilon = 1e-5F;

Values rms(const Values& x, const Values& gain) {
  Values y(kElements), rstd(kSize.rows);
  rms_norm_forward(y.data(), rstd.data(), x.data(), gain.data(), kSize, kEpsilon);
  return y;
}

Values layer(const Values& x, const Values& gain, const Values& bias) {
  Values y(kElements), mean(kSize.rows), rstd(kSize.rows);
  layer_norm_forward(y.data(), mean.data(), rstd.data(), x.data(), gain.data(), bias.data(), kSize, kEpsilon);
  return y;
}

}  // namespace

TEST_CASE("RMSNorm gives rows of mean square one") {
  const Values y = rms(random_values(kElements, 1, 5.0F), Values(kSize.columns, 1.0F));
  for (int row = 0; row < kSize.rows; ++row) {
    double squares = 0;
    for (int c = 0; c < kSize.columns; ++c) squares += std::pow(double(y[row * kSize.columns + c]), 2);
    CHECK(squares / kSize.columns == doctest::Approx(1.0).epsilon(1e-5));
  }
}

TEST_CASE("the gradients of RMSNorm agree with finite differences") {
  Values x = random_values(kElements, 1), gain = random_values(kSize.columns, 2);
  const Values dy = random_values(kElements, 3);
  Values y(kElements), rstd(kSize.rows), dx(kElements), dgain(kSize.columns, 0.0F);
  rms_norm_forward(y.data(), rstd.data(), x.data(), gain.data(), kSize, kEpsilon);
  rms_norm_backward(dx.data(), dgain.data(), dy.data(), nullptr, x.data(), rstd.data(), gain.data(), kSize);
  CHECK(gradient_error(x, dx, [&] { return weighted_sum(dy, rms(x, gain)); }) < kGradientTolerance);
  CHECK(gradient_error(gain, dgain, [&] { return weighted_sum(dy, rms(x, gain)); }) < kGradientTolerance);
}

TEST_CASE("LayerNorm gives rows of mean zero and variance one before gain and bias") {
  const Values y = layer(random_values(kElements, 1, 5.0F), Values(kSize.columns, 1.0F), Values(kSize.columns, 0.0F));
  for (int row = 0; row < kSize.rows; ++row) {
    double sum = 0, squares = 0;
    for (int c = 0; c < kSize.columns; ++c) {
      sum += double(y[row * kSize.columns + c]);
      squares += std::pow(double(y[row * kSize.columns + c]), 2);
    }
    CHECK(std::abs(sum / kSize.columns) < 1e-6);
    CHECK(squares / kSize.columns == doctest::Approx(1.0).epsilon(1e-5));
  }
}

TEST_CASE("the gradients of LayerNorm agree with finite differences") {
  Values x = random_values(kElements, 1), gain = random_values(kSize.columns, 2),
         bias = random_values(kSize.columns, 4);
  const Values dy = random_values(kElements, 3);
  Values y(kElements), mean(kSize.rows), rstd(kSize.rows), dx(kElements), dgain(kSize.columns), dbias(kSize.columns);
  layer_norm_forward(y.data(), mean.data(), rstd.data(), x.data(), gain.data(), bias.data(), kSize, kEpsilon);
  layer_norm_backward(dx.data(), dgain.data(), dbias.data(), dy.data(), nullptr, x.data(), mean.data(), rstd.data(),
                      gain.data(), kSize);
  const auto objective = [&] { return weighted_sum(dy, layer(x, gain, bias)); };
  CHECK(gradient_error(x, dx, objective) < kGradientTolerance);
  CHECK(gradient_error(gain, dgain, objective) < kGradientTolerance);
  CHECK(gradient_error(bias, dbias, objective) < kGradientTolerance);
}

TEST_CASE("a norm's backward adds the residual's gradient, also in place of its input") {
  const Values x = random_values(kElements, 1), gain = random_values(kSize.columns, 2), bias(kSize.columns, 0.0F);
  const Values dy = random_values(kElements, 3), past = random_values(kElements, 5);
  Values y(kElements), mean(kSize.rows), rstd(kSize.rows), alone(kElements), dgain(kSize.columns), dbias(kSize.columns);

  rms_norm_forward(y.data(), rstd.data(), x.data(), gain.data(), kSize, kEpsilon);
  rms_norm_backward(alone.data(), dgain.data(), dy.data(), nullptr, x.data(), rstd.data(), gain.data(), kSize);
  Values in_place = x;
  rms_norm_backward(in_place.data(), dgain.data(), dy.data(), past.data(), in_place.data(), rstd.data(), gain.data(),
                    kSize);
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(in_place[i] == doctest::Approx(alone[i] + past[i]));

  layer_norm_forward(y.data(), mean.data(), rstd.data(), x.data(), gain.data(), bias.data(), kSize, kEpsilon);
  layer_norm_backward(alone.data(), dgain.data(), dbias.data(), dy.data(), nullptr, x.data(), mean.data(), rstd.data(),
                      gain.data(), kSize);
  in_place = x;
  layer_norm_backward(in_place.data(), dgain.data(), dbias.data(), dy.data(), past.data(), in_place.data(), mean.data(),
                      rstd.data(), gain.data(), kSize);
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(in_place[i] == doctest::Approx(alone[i] + past[i]));
}

}  // namespace plumb::test
