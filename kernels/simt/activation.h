#pragma once
// The MLP's nonlinearities on a GPU (kernels/cpu/activation.h has the formulas), element by element.

#include "kernels/cpu/activation.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

inline constexpr float kGeluCubic = 0.044715F;
inline constexpr float kGeluTwiceRoot = 1.5957691216F;  ///< 2 sqrt(2 / pi)
inline constexpr float kRootHalf = 0.70710678119F;
inline constexpr float kNormalDensity = 0.39894228040F;  ///< 1 / sqrt(2 pi)

PLUMB_SIMT float sigmoid(float x) {
  return 1.0F / (1.0F + expf(-x));
}

PLUMB_SIMT float gelu(float x, bool exact) {
  if (exact) return x * 0.5F * erfcf(-x * kRootHalf);
  return x * sigmoid(kGeluTwiceRoot * (x + kGeluCubic * x * x * x));
}

PLUMB_SIMT float gelu_slope(float x, bool exact) {
  if (exact) return 0.5F * erfcf(-x * kRootHalf) + x * kNormalDensity * expf(-0.5F * x * x);
  const float s = sigmoid(kGeluTwiceRoot * (x + kGeluCubic * x * x * x));
  return s + x * s * (1.0F - s) * kGeluTwiceRoot * (1.0F + 3.0F * kGeluCubic * x * x);
}

/// y = gelu(x). x, y: [elements]
template <class S>
struct GeluForward {
  S* y;
  const S* x;
  std::int64_t elements;
  bool exact;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, elements, [&](std::int64_t i) { store(y[i], gelu(widened(x[i]), exact)); });
  }
};

/// x := dy * gelu'(x). x, dy: [elements]
template <class S>
struct GeluBackward {
  S* x;
  const S* dy;
  std::int64_t elements;
  bool exact;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, elements,
                     [&](std::int64_t i) { store(x[i], widened(dy[i]) * gelu_slope(widened(x[i]), exact)); });
  }
};

/// y = silu(gate) * up. gate_up: [R, 2F]; y: [R, F]
template <class S>
struct SwigluForward {
  S* y;
  const S* gate_up;
  ActivationSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.rows * size.columns, [&](std::int64_t i) {
      const S* gate = gate_up + i / size.columns * 2 * size.columns + i % size.columns;
      const float g = widened(*gate);
      store(y[i], g * sigmoid(g) * widened(gate[size.columns]));
    });
  }
};

/// Replaces gate_up by its gradient. gate_up: [R, 2F]; dy: [R, F]
template <class S>
struct SwigluBackward {
  S* gate_up;
  const S* dy;
  ActivationSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.rows * size.columns, [&](std::int64_t i) {
      S* gate = gate_up + i / size.columns * 2 * size.columns + i % size.columns;
      const float g = widened(*gate);
      const float s = sigmoid(g);
      const float gradient = widened(dy[i]);
      const float up = widened(gate[size.columns]);
      store(*gate, gradient * up * (s + g * s * (1.0F - s)));
      store(gate[size.columns], gradient * g * s);
    });
  }
};

}}}  // namespace plumb::kernels::simt
