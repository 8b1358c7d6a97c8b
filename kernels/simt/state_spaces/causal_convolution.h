#pragma once
// The short convolution before a state space on a GPU (kernels/cpu/state_spaces/causal_convolution.h has the formula),
// over whole sequences. Symbols are those of that file.

#include "kernels/cpu/state_spaces/causal_convolution.h"
#include "kernels/simt/activation.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

inline constexpr int kMostTaps = 8;  ///< tokens that an output may see

/// Returns what SiLU takes for one channel of a token. x: the channel in the sequence's first token; weight: [w]
template <class S>
PLUMB_SIMT float sum_of_taps(const S* x, const S* weight, float bias, std::int64_t token,
                             const CausalConvolutionSize& size) {
  float sum = bias;
  for (std::int64_t k = 0; k < size.taps; ++k)
    if (const std::int64_t from = token - (size.taps - 1) + k; from >= 0)
      sum += widened(weight[k]) * widened(x[from * size.stride]);
  return sum;
}

/// y: [T, C]; x: [T, stride]; weight: [C, w]; bias: [C], or null
template <class S>
struct CausalConvolutionForward {
  S* y;
  const S* x;
  const S* weight;
  const float* bias;
  CausalConvolutionSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.batch * size.sequence * size.channels, [&](std::int64_t i) {
      const std::int64_t row = i / size.channels, c = i % size.channels, token = row % size.sequence;
      const float sum = sum_of_taps(x + (row - token) * size.stride + c, weight + c * size.taps,
                                    bias == nullptr ? 0.0F : bias[c], token, size);
      store(y[i], silu(sum));
    });
  }
};

/// Replaces x by its gradient, and adds to those of weight and bias (null: none). A thread takes a channel, and its
/// tokens from the last one on, so that what an earlier token's sum reads is still there. dy: [T, C]
template <class S>
struct CausalConvolutionBackward {
  S* x;
  float* dweight;
  float* dbias;
  const S* dy;
  const S* weight;
  const float* bias;
  CausalConvolutionSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.channels, [&](std::int64_t c) {
      const S* const own = weight + c * size.taps;
      float of_weight[kMostTaps] = {};  // [tokens back]
      float of_bias = 0;
      for (std::int64_t sequence = 0; sequence < size.batch; ++sequence) {
        const std::int64_t row = sequence * size.sequence;
        S* const first = x + row * size.stride + c;
        float dsums[kMostTaps] = {};  // gradients of the sums of this token and of those behind it
        for (std::int64_t token = size.sequence - 1; token >= 0; --token) {
          for (int i = kMostTaps - 1; i > 0; --i) dsums[i] = dsums[i - 1];
          const float sum = sum_of_taps(first, own, bias == nullptr ? 0.0F : bias[c], token, size);
          dsums[0] = widened(dy[(row + token) * size.channels + c]) * silu_slope(sum);
          of_bias += dsums[0];
          float dx = 0;
          for (int i = 0; i < kMostTaps; ++i) {
            if (i >= size.taps) continue;
            if (token >= i) of_weight[i] += dsums[0] * widened(first[(token - i) * size.stride]);
            dx += widened(own[size.taps - 1 - i]) * dsums[i];
          }
          store(first[token * size.stride], dx);
        }
      }
      for (int i = 0; i < kMostTaps; ++i)
        if (i < size.taps) dweight[c * size.taps + size.taps - 1 - i] += of_weight[i];
      if (dbias != nullptr) dbias[c] += of_bias;
    });
  }
};

}}}  // namespace plumb::kernels::simt
