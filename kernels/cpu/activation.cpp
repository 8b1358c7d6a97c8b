#include "kernels/cpu/activation.h"

#include <cmath>
#include <numbers>

#include "kernels/cpu/sigmoid.h"

namespace plumb { inline namespace kernels {
namespace {

// The tanh form is 0.5 x (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
constexpr float kCubic = 0.044715F;
const float kTwiceRoot = 2.0F * std::sqrt(2.0F / std::numbers::pi_v<float>);

float gelu_tanh(float x) {
  return x * sigmoid(kTwiceRoot * (x + kCubic * x * x * x));
}

float gelu_tanh_slope(float x) {
  const float s = sigmoid(kTwiceRoot * (x + kCubic * x * x * x));
  return s + x * s * (1.0F - s) * kTwiceRoot * (1.0F + 3.0F * kCubic * x * x);
}

float normal_cdf(float x) {
  return 0.5F * std::erfc(-x / std::numbers::sqrt2_v<float>);
}

float gelu_erf_slope(float x) {
  const float density = std::exp(-0.5F * x * x) * std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
  return normal_cdf(x) + x * density;
}

}  // namespace

void gelu_forward(float* y, const float* x, const ActivationSize& size, bool exact) {
  const std::int64_t count = size.rows * size.columns;
  if (exact) {
    for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * normal_cdf(x[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) y[i] = gelu_tanh(x[i]);
  }
}

void gelu_backward(float* x, const float* dy, const ActivationSize& size, bool exact) {
  const std::int64_t count = size.rows * size.columns;
  if (exact) {
    for (std::int64_t i = 0; i < count; ++i) x[i] = dy[i] * gelu_erf_slope(x[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) x[i] = dy[i] * gelu_tanh_slope(x[i]);
  }
}

void swiglu_forward(float* y, const float* gate_up, const ActivationSize& size) {
  for (std::int64_t row = 0; row < size.rows; ++row) {
    const float* gate = gate_up + row * 2 * size.columns;
    const float* up = gate + size.columns;
    float* y_row = y + row * size.columns;
    for (std::int64_t c = 0; c < size.columns; ++c) y_row[c] = silu(gate[c]) * up[c];
  }
}

void swiglu_backward(float* gate_up, const float* dy, const ActivationSize& size) {
  for (std::int64_t row = 0; row < size.rows; ++row) {
    float* gate = gate_up + row * 2 * size.columns;
    float* up = gate + size.columns;
    const float* dy_row = dy + row * size.columns;
    for (std::int64_t c = 0; c < size.columns; ++c) {
      const float g = gate[c];
      gate[c] = dy_row[c] * up[c] * silu_slope(g);
      up[c] = dy_row[c] * silu(g);
    }
  }
}

}}  // namespace plumb::kernels
