#pragma once
// The MLP's nonlinearities on a GPU (kernels/cpu/activation.h has the formulas), element by element.

#include "kernels/cpu/activation.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/simt/wide.h"

namespace plumb { inline namespace kernels { namespace simt {

inline constexpr float kGeluCubic = 0.044715F;
inline constexpr float kGeluTwiceRoot = 1.5957691216F;  ///< 2 sqrt(2 / pi)
inline constexpr float kRootHalf = 0.70710678119F;
inline constexpr float kNormalDensity = 0.39894228040F;  ///< 1 / sqrt(2 pi)

PLUMB_SIMT float sigmoid(float x) {
  return 1.0F / (1.0F + expf(-x));
}

/// SiLU (Hendrycks & Gimpel 2016), and its slope.
PLUMB_SIMT float silu(float x) {
  return x * sigmoid(x);
}
PLUMB_SIMT float silu_slope(float x) {
  const float s = sigmoid(x);
  return s + x * s * (1.0F - s);
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
    for_each_stretch<S>(thread, 1, elements, is_wide<S>(elements, x, y), [&]<int N>(std::int64_t, std::int64_t i) {
      float values[N];
      load_all(values, x + i);
      for (float& value : values) value = gelu(value, exact);
      store_all(y + i, values);
    });
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
    for_each_stretch<S>(thread, 1, elements, is_wide<S>(elements, x, dy), [&]<int N>(std::int64_t, std::int64_t i) {
      float values[N], gradients[N];
      load_all(values, x + i);
      load_all(gradients, dy + i);
      for (int j = 0; j < N; ++j) gradients[j] *= gelu_slope(values[j], exact);
      store_all(x + i, gradients);
    });
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
    const bool wide = is_wide<S>(size.columns, y, gate_up);
    for_each_stretch<S>(thread, size.rows, size.columns, wide, [&]<int N>(std::int64_t row, std::int64_t c) {
      const S* gate = gate_up + row * 2 * size.columns + c;
      float gates[N], ups[N];
      load_all(gates, gate);
      load_all(ups, gate + size.columns);
      for (int j = 0; j < N; ++j) ups[j] *= silu(gates[j]);
      store_all(y + row * size.columns + c, ups);
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
    const bool wide = is_wide<S>(size.columns, dy, gate_up);
    for_each_stretch<S>(thread, size.rows, size.columns, wide, [&]<int N>(std::int64_t row, std::int64_t c) {
      S* gate = gate_up + row * 2 * size.columns + c;
      float gates[N], ups[N], gradients[N];
      load_all(gates, gate);
      load_all(ups, gate + size.columns);
      load_all(gradients, dy + row * size.columns + c);
      for (int j = 0; j < N; ++j) {
        const float g = gates[j], s = sigmoid(g);
        gates[j] = gradients[j] * ups[j] * (s + g * s * (1.0F - s));
        ups[j] = gradients[j] * g * s;
      }
      store_all(gate, gates);
      store_all(gate + size.columns, ups);
    });
  }
};

}}}  // namespace plumb::kernels::simt
