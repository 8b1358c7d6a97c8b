#pragma once
// The short convolution before a state space (Gu & Dao 2023; Dao & Gu 2024): each channel by itself over the last tokens
// of its sequence, then SiLU. KernelKind kCausalConvolutionForward and kCausalConvolutionBackward.
//
//   y[t,c] = silu(bias[c] + sum over k of weight[c,k] x[t - (w-1) + k, c])

#include <cstdint>

namespace plumb { inline namespace kernels {

/// Sequences of s tokens whose C channels are columns of wider rows.
struct CausalConvolutionSize {
  std::int64_t batch = 0;     ///< b
  std::int64_t sequence = 0;  ///< s, of a slice where sequences come in slices
  std::int64_t channels = 0;  ///< C
  std::int64_t taps = 0;      ///< w tokens that an output sees
  std::int64_t stride = 0;    ///< elements from one token's channels to the next token's

  /// Returns the elements of the rows before a slice: the last w-1 of the earlier tokens, [b, w-1, C].
  constexpr std::int64_t earlier_elements() const { return batch * (taps - 1) * channels; }
};

/// weight: [C, w]; bias: [C] or null
struct CausalConvolutionParameters {
  const float* weight = nullptr;
  const float* bias = nullptr;
};
struct CausalConvolutionGradients {
  float* weight = nullptr;
  float* bias = nullptr;
};

/// y: [T, C]; x: [T, stride], whose first C columns are read; earlier: [b, w-1, C] the rows before the first token, null
/// for zeros
void causal_convolution_forward(float* y, const float* x, const float* earlier,
                                const CausalConvolutionParameters& parameters, const CausalConvolutionSize& size);

/// Writes the rows that the slice behind this one finds before its first token, [b, w-1, C].
void keep_last_rows(float* kept, const float* x, const float* earlier, const CausalConvolutionSize& size);

/// Replaces x by its gradient and adds the gradients of the parameters. dy: [T, C]. Where sequences come in slices,
/// `of_earlier` [b, w-1, C] holds the gradient of the rows that keep_last_rows() has kept of this slice, and afterwards
/// that of the rows before it; otherwise it is null.
void causal_convolution_backward(float* x, const CausalConvolutionGradients& gradients, float* of_earlier,
                                 const float* dy, const float* earlier, const CausalConvolutionParameters& parameters,
                                 const CausalConvolutionSize& size);

}}  // namespace plumb::kernels
