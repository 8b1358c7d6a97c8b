#pragma once
// The sigmoid, and SiLU(x) = x sigmoid(x) (Elfwing et al. 2017) with its derivative.

#include <cmath>

namespace plumb { inline namespace kernels {

inline float sigmoid(float x) {
  return 1.0F / (1.0F + std::exp(-x));
}

inline float silu(float x) {
  return x * sigmoid(x);
}

inline float silu_slope(float x) {
  const float s = sigmoid(x);
  return s + x * s * (1.0F - s);
}

}}  // namespace plumb::kernels
