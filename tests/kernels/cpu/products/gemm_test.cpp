#include "kernels/cpu/products/gemm.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {
constexpr std::int64_t kRows = 5, kIn = 7, kOut = 3;
}

TEST_CASE("the input gradient of a linear layer agrees with finite differences") {
  Values x = random_values(kRows * kIn, 1);
  const Values weight = random_values(kOut * kIn, 2), dy = random_values(kRows * kOut, 3);
  Values dx(x.size());
  linear_input_grad(dx.data(), dy.data(), weight.data(), {kRows, kIn, kOut});
  const auto objective = [&] {
    Values y(kRows * kOut);
    linear_forward(y.data(), x.data(), weight.data(), {kRows, kOut, kIn});
    return weighted_sum(dy, y);
  };
  CHECK(gradient_error(x, dx, objective) < kGradientTolerance);
}

TEST_CASE("the weight gradient of a linear layer agrees with finite differences and is added to what is there") {
  Values weight = random_values(kOut * kIn, 2);
  const Values x = random_values(kRows * kIn, 1), dy = random_values(kRows * kOut, 3);
  Values dweight(weight.size(), 0.0F);
  linear_weight_grad(dweight.data(), dy.data(), x.data(), {kOut, kIn, kRows});
  const auto objective = [&] {
    Values y(kRows * kOut);
    linear_forward(y.data(), x.data(), weight.data(), {kRows, kOut, kIn});
    return weighted_sum(dy, y);
  };
  CHECK(gradient_error(weight, dweight, objective) < kGradientTolerance);

  const Values once = dweight;
  linear_weight_grad(dweight.data(), dy.data(), x.data(), {kOut, kIn, kRows});
  Values twice = once;
  for (float& value : twice) value *= 2;
  CHECK(relative_difference(dweight, twice) < 1e-6);
}

}  // namespace plumb::test
