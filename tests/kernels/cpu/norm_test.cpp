#include "kernels/cpu/norm.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

constexpr NormSize kNormSize{.rows = 3, .columns = 37};
constexpr std::int64_t kNormElements = kNormSize.rows * kNormSize.columns;
constexpr float kEpsilon = 1e-5F;

Values rms_normalized(const Values& x, const Values& gain) {
  Values y(kNormElements), rstd(kNormSize.rows);
  rms_norm_forward(y.data(), rstd.data(), x.data(), gain.data(), kNormSize, kEpsilon);
  return y;
}

Values layer_normalized(const Values& x, const Values& gain, const Values& bias) {
  Values y(kNormElements), mean(kNormSize.rows), rstd(kNormSize.rows);
  layer_norm_forward(y.data(), mean.data(), rstd.data(), x.data(), gain.data(), bias.data(), kNormSize, kEpsilon);
  return y;
}

}  // namespace

TEST_CASE("RMSNorm gives rows of mean square one") {
  const Values y = rms_normalized(random_values(kNormElements, 1, 5.0F), Values(kNormSize.columns, 1.0F));
  for (int row = 0; row < kNormSize.rows; ++row) {
    double squares = 0;
    for (int c = 0; c < kNormSize.columns; ++c) squares += std::pow(double(y[row * kNormSize.columns + c]), 2);
    CHECK(squares / kNormSize.columns == doctest::Approx(1.0).epsilon(1e-5));
  }
}

TEST_CASE("the gradients of RMSNorm agree with finite differences") {
  Values x = random_values(kNormElements, 1), gain = random_values(kNormSize.columns, 2);
  const Values dy = random_values(kNormElements, 3);
  Values y(kNormElements), rstd(kNormSize.rows), dx(kNormElements), dgain(kNormSize.columns, 0.0F);
  rms_norm_forward(y.data(), rstd.data(), x.data(), gain.data(), kNormSize, kEpsilon);
  rms_norm_backward(dx.data(), dgain.data(), dy.data(), nullptr, x.data(), rstd.data(), gain.data(), kNormSize);
  CHECK(gradient_error(x, dx, [&] { return weighted_sum(dy, rms_normalized(x, gain)); }) < kGradientTolerance);
  CHECK(gradient_error(gain, dgain, [&] { return weighted_sum(dy, rms_normalized(x, gain)); }) < kGradientTolerance);
}

TEST_CASE("LayerNorm gives rows of mean zero and variance one before gain and bias") {
  const Values y = layer_normalized(random_values(kNormElements, 1, 5.0F), Values(kNormSize.columns, 1.0F),
                                    Values(kNormSize.columns, 0.0F));
  for (int row = 0; row < kNormSize.rows; ++row) {
    double sum = 0, squares = 0;
    for (int c = 0; c < kNormSize.columns; ++c) {
      sum += double(y[row * kNormSize.columns + c]);
      squares += std::pow(double(y[row * kNormSize.columns + c]), 2);
    }
    CHECK(std::abs(sum / kNormSize.columns) < 1e-6);
    CHECK(squares / kNormSize.columns == doctest::Approx(1.0).epsilon(1e-5));
  }
}

TEST_CASE("the gradients of LayerNorm agree with finite differences") {
  Values x = random_values(kNormElements, 1), gain = random_values(kNormSize.columns, 2),
         bias = random_values(kNormSize.columns, 4);
  const Values dy = random_values(kNormElements, 3);
  Values y(kNormElements), mean(kNormSize.rows), rstd(kNormSize.rows), dx(kNormElements), dgain(kNormSize.columns),
      dbias(kNormSize.columns);
  layer_norm_forward(y.data(), mean.data(), rstd.data(), x.data(), gain.data(), bias.data(), kNormSize, kEpsilon);
  layer_norm_backward(dx.data(), dgain.data(), dbias.data(), dy.data(), nullptr, x.data(), mean.data(), rstd.data(),
                      gain.data(), kNormSize);
  const auto objective = [&] { return weighted_sum(dy, layer_normalized(x, gain, bias)); };
  CHECK(gradient_error(x, dx, objective) < kGradientTolerance);
  CHECK(gradient_error(gain, dgain, objective) < kGradientTolerance);
  CHECK(gradient_error(bias, dbias, objective) < kGradientTolerance);
}

TEST_CASE("a norm's backward adds the residual's gradient, also in place of its input") {
  const Values x = random_values(kNormElements, 1), gain = random_values(kNormSize.columns, 2),
               bias(kNormSize.columns, 0.0F);
  const Values dy = random_values(kNormElements, 3), past = random_values(kNormElements, 5);
  Values y(kNormElements), mean(kNormSize.rows), rstd(kNormSize.rows), alone(kNormElements), dgain(kNormSize.columns),
      dbias(kNormSize.columns);

  rms_norm_forward(y.data(), rstd.data(), x.data(), gain.data(), kNormSize, kEpsilon);
  rms_norm_backward(alone.data(), dgain.data(), dy.data(), nullptr, x.data(), rstd.data(), gain.data(), kNormSize);
  Values in_place = x;
  rms_norm_backward(in_place.data(), dgain.data(), dy.data(), past.data(), in_place.data(), rstd.data(), gain.data(),
                    kNormSize);
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(in_place[i] == doctest::Approx(alone[i] + past[i]));

  layer_norm_forward(y.data(), mean.data(), rstd.data(), x.data(), gain.data(), bias.data(), kNormSize, kEpsilon);
  layer_norm_backward(alone.data(), dgain.data(), dbias.data(), dy.data(), nullptr, x.data(), mean.data(), rstd.data(),
                      gain.data(), kNormSize);
  in_place = x;
  layer_norm_backward(in_place.data(), dgain.data(), dbias.data(), dy.data(), past.data(), in_place.data(), mean.data(),
                      rstd.data(), gain.data(), kNormSize);
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(in_place[i] == doctest::Approx(alone[i] + past[i]));
}

}  // namespace plumb::test
