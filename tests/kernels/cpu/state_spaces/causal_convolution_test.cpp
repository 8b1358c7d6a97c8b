#include "kernels/cpu/state_spaces/causal_convolution.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

constexpr CausalConvolutionSize kCausal{.batch = 2, .sequence = 5, .channels = 3, .taps = 4, .stride = 7};

/// Returns the rows [first, first + count) of each sequence of kCausal.
Values causal_slice(const Values& rows, std::int64_t width, std::int64_t first, std::int64_t count) {
  Values part;
  for (std::int64_t sequence = 0; sequence < kCausal.batch; ++sequence) {
    const auto begin = rows.begin() + (sequence * kCausal.sequence + first) * width;
    part.insert(part.end(), begin, begin + count * width);
  }
  return part;
}

}  // namespace

TEST_CASE("an output sees its own token at the last tap, and earlier ones before it") {
  // One channel of 3 tokens and 2 taps: sums are 10 + 3 x[t] + 2 x[t-1].
  const CausalConvolutionSize size{.batch = 1, .sequence = 3, .channels = 1, .taps = 2, .stride = 1};
  const Values x = {1, 2, 3}, weight = {2, 3}, bias = {10}, earlier = {5};
  Values y(3);
  const auto silu = [](double value) { return doctest::Approx(value / (1 + std::exp(-value))).epsilon(1e-6); };
  causal_convolution_forward(y.data(), x.data(), nullptr, {weight.data(), bias.data()}, size);
  CHECK(y[0] == silu(13));
  CHECK(y[1] == silu(18));
  CHECK(y[2] == silu(23));
  causal_convolution_forward(y.data(), x.data(), earlier.data(), {weight.data(), nullptr}, size);
  CHECK(y[0] == silu(13));  // 3 x 1 + 2 x 5
  Values kept(1);
  keep_last_rows(kept.data(), x.data(), earlier.data(), size);
  CHECK(kept == Values{3});
}

TEST_CASE("the gradients of a causal convolution are those of finite differences") {
  Values x = random_values(kCausal.batch * kCausal.sequence * kCausal.stride, 1);
  Values weight = random_values(kCausal.channels * kCausal.taps, 2), bias = random_values(kCausal.channels, 3);
  Values earlier = random_values(kCausal.earlier_elements(), 4);
  const Values dy = random_values(kCausal.batch * kCausal.sequence * kCausal.channels, 5);
  const Values dkept = random_values(kCausal.earlier_elements(), 6);
  Values y(dy.size()), kept(dkept.size());
  const auto objective = [&] {
    causal_convolution_forward(y.data(), x.data(), earlier.data(), {weight.data(), bias.data()}, kCausal);
    keep_last_rows(kept.data(), x.data(), earlier.data(), kCausal);
    return weighted_sum(dy, y) + weighted_sum(dkept, kept);
  };
  Values dx = x, dweight(weight.size()), dbias(bias.size()), of_earlier = dkept;
  causal_convolution_backward(dx.data(), {dweight.data(), dbias.data()}, of_earlier.data(), dy.data(), earlier.data(),
                              {weight.data(), bias.data()}, kCausal);
  CHECK(gradient_error(weight, dweight, objective) < kGradientTolerance);
  CHECK(gradient_error(bias, dbias, objective) < kGradientTolerance);
  CHECK(gradient_error(earlier, of_earlier, objective) < kGradientTolerance);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (i % std::size_t(kCausal.stride) < std::size_t(kCausal.channels)) continue;
    CHECK(dx[i] == x[i]);  // columns of others keep what they have
    dx[i] = 0;
  }
  CHECK(gradient_error(x, dx, objective) < kGradientTolerance);
}

TEST_CASE("slices shorter than the taps give what the whole sequence gives") {
  const Values x = random_values(kCausal.batch * kCausal.sequence * kCausal.stride, 1);
  const Values weight = random_values(kCausal.channels * kCausal.taps, 2);
  const Values dy = random_values(kCausal.batch * kCausal.sequence * kCausal.channels, 5);
  const CausalConvolutionParameters parameters{weight.data(), nullptr};
  Values y(dy.size()), dx = x, dweight(weight.size());
  causal_convolution_forward(y.data(), x.data(), nullptr, parameters, kCausal);
  causal_convolution_backward(dx.data(), {dweight.data(), nullptr}, nullptr, dy.data(), nullptr, parameters, kCausal);

  const std::vector<std::int64_t> bounds = {0, 2, 3, 5};
  std::vector<Values> earlier = {Values(std::size_t(kCausal.earlier_elements()))};
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    CausalConvolutionSize size = kCausal;
    size.sequence = bounds[i + 1] - bounds[i];
    const Values part = causal_slice(x, kCausal.stride, bounds[i], size.sequence);
    Values own(std::size_t(size.batch * size.sequence * size.channels)), kept(earlier.front().size());
    causal_convolution_forward(own.data(), part.data(), earlier.back().data(), parameters, size);
    CHECK(own == causal_slice(y, kCausal.channels, bounds[i], size.sequence));
    keep_last_rows(kept.data(), part.data(), earlier.back().data(), size);
    earlier.push_back(kept);
  }
  Values carried(earlier.front().size()), sum(weight.size());
  for (std::size_t i = bounds.size() - 1; i-- > 0;) {
    CausalConvolutionSize size = kCausal;
    size.sequence = bounds[i + 1] - bounds[i];
    Values part = causal_slice(x, kCausal.stride, bounds[i], size.sequence);
    const Values dout = causal_slice(dy, kCausal.channels, bounds[i], size.sequence);
    causal_convolution_backward(part.data(), {sum.data(), nullptr}, carried.data(), dout.data(), earlier[i].data(),
                                parameters, size);
    CHECK(relative_difference(part, causal_slice(dx, kCausal.stride, bounds[i], size.sequence)) < 1e-6);
  }
  CHECK(relative_difference(sum, dweight) < 1e-6);
}

}  // namespace plumb::test
