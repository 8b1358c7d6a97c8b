#pragma once
// The kernels' tests share these functions: seeded values, a weighted sum as the objective, and finite differences.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace plumb::test {

using Values = std::vector<float>;
using Integers = std::vector<std::int32_t>;

inline Values random_values(std::int64_t count, unsigned seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  Values values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

/// Returns the sum of weights * values in double, an objective whose gradient with respect to `values` is `weights`.
inline double weighted_sum(const Values& weights, const Values& values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += double(weights[i]) * double(values[i]);
  return sum;
}

/// Returns the largest |gradient - central difference| over the largest |gradient|, for every element of `x`;
/// `objective` reads x.
/// With steps of 1e-2 on values of size 1, truncation is about 1e-4 and the rounding of float kernels about 1e-5.
inline double gradient_error(Values& x, const Values& gradient, const std::function<double()>& objective,
                             float step = 1e-2F) {
  double largest = 1e-12, error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float value = x[i];
    const float above = value + step, below = value - step;
    x[i] = above;
    const double high = objective();
    x[i] = below;
    const double low = objective();
    x[i] = value;
    const double numeric = (high - low) / (double(above) - double(below));
    error = std::max(error, std::abs(numeric - double(gradient[i])));
    largest = std::max(largest, std::abs(double(gradient[i])));
  }
  return error / largest;
}

/// Returns the largest |a - b| over the largest |b|.
inline double relative_difference(const Values& a, const Values& b) {
  double largest = 1e-12, error = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error = std::max(error, std::abs(double(a[i]) - double(b[i])));
    largest = std::max(largest, std::abs(double(b[i])));
  }
  return error / largest;
}

inline constexpr double kGradientTolerance = 2e-3;

}  // namespace plumb::test
