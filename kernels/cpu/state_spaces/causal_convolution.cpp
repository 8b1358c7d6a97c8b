#include "kernels/cpu/state_spaces/causal_convolution.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/sigmoid.h"

namespace plumb { inline namespace kernels {
namespace {

/// One sequence, with the rows before its first token.
struct Rows {
  const float* first = nullptr;    // [s, stride]
  const float* earlier = nullptr;  // [w-1, C], or null
  const CausalConvolutionSize& size;

  /// Returns the channels of a token, which may lie before the first; null for zeros.
  const float* at(std::int64_t token) const {
    if (token >= 0) return first + token * size.stride;
    return earlier == nullptr ? nullptr : earlier + (token + size.taps - 1) * size.channels;
  }
};

Rows rows_of(const float* x, const float* earlier, const CausalConvolutionSize& size, std::int64_t sequence) {
  const float* own = earlier == nullptr ? nullptr : earlier + sequence * (size.taps - 1) * size.channels;
  return {.first = x + sequence * size.sequence * size.stride, .earlier = own, .size = size};
}

/// sums[c] = bias[c] + the weighted channels of the last w tokens
void add_taps(float* sums, const Rows& rows, std::int64_t token, const CausalConvolutionParameters& parameters) {
  const CausalConvolutionSize& size = rows.size;
  if (parameters.bias == nullptr)
    std::fill_n(sums, size.channels, 0.0F);
  else
    std::copy_n(parameters.bias, size.channels, sums);
  for (std::int64_t k = 0; k < size.taps; ++k) {
    const float* x = rows.at(token - (size.taps - 1) + k);
    if (x == nullptr) continue;
    for (std::int64_t c = 0; c < size.channels; ++c) sums[c] += parameters.weight[c * size.taps + k] * x[c];
  }
}

}  // namespace

void causal_convolution_forward(float* y, const float* x, const float* earlier,
                                const CausalConvolutionParameters& parameters, const CausalConvolutionSize& size) {
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence) {
    const Rows rows = rows_of(x, earlier, size, sequence);
    for (std::int64_t token = 0; token < size.sequence; ++token, y += size.channels) {
      add_taps(y, rows, token, parameters);
      for (std::int64_t c = 0; c < size.channels; ++c) y[c] = silu(y[c]);
    }
  }
}

void keep_last_rows(float* kept, const float* x, const float* earlier, const CausalConvolutionSize& size) {
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence) {
    const Rows rows = rows_of(x, earlier, size, sequence);
    for (std::int64_t i = 0; i < size.taps - 1; ++i, kept += size.channels) {
      const float* row = rows.at(size.sequence - (size.taps - 1) + i);
      if (row == nullptr)
        std::fill_n(kept, size.channels, 0.0F);
      else
        std::copy_n(row, size.channels, kept);
    }
  }
}

void causal_convolution_backward(float* x, const CausalConvolutionGradients& gradients, float* of_earlier,
                                 const float* dy, const float* earlier, const CausalConvolutionParameters& parameters,
                                 const CausalConvolutionSize& size) {
  const std::int64_t before = size.taps - 1;
  // The gradients of the last w sums, and of the rows that the next slice has seen.
  std::vector<float> sums(static_cast<std::size_t>(size.taps * size.channels));
  std::vector<float> kept(static_cast<std::size_t>(before * size.channels));
  const auto sum_at = [&](std::int64_t token) { return sums.data() + token % size.taps * size.channels; };
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence) {
    const Rows rows = rows_of(x, earlier, size, sequence);
    float* const own = x + sequence * size.sequence * size.stride;
    float* const carried = of_earlier == nullptr ? nullptr : of_earlier + sequence * before * size.channels;
    if (carried != nullptr) std::copy_n(carried, kept.size(), kept.begin());
    // Token after token from the last one: what an earlier token's sum reads is still there.
    for (std::int64_t token = size.sequence - 1; token >= (carried == nullptr ? 0 : -before); --token) {
      if (token >= 0) {
        float* const dsum = sum_at(token);
        const float* const dy_row = dy + (sequence * size.sequence + token) * size.channels;
        add_taps(dsum, rows, token, parameters);
        for (std::int64_t c = 0; c < size.channels; ++c) {
          dsum[c] = dy_row[c] * silu_slope(dsum[c]);
          if (gradients.bias != nullptr) gradients.bias[c] += dsum[c];
        }
        for (std::int64_t k = 0; k < size.taps; ++k)
          if (const float* row = rows.at(token - before + k); row != nullptr)
            for (std::int64_t c = 0; c < size.channels; ++c) gradients.weight[c * size.taps + k] += dsum[c] * row[c];
      }
      float* const dx = token >= 0 ? own + token * size.stride : carried + (token + before) * size.channels;
      if (const std::int64_t row = token - (size.sequence - before); carried != nullptr && row >= 0)
        std::copy_n(kept.begin() + row * size.channels, size.channels, dx);
      else
        std::fill_n(dx, size.channels, 0.0F);
      for (std::int64_t k = 0; k < size.taps; ++k) {
        const std::int64_t later = token + before - k;  // whose sum has this token at tap k
        if (later < 0 || later >= size.sequence) continue;
        const float* const dsum = sum_at(later);
        for (std::int64_t c = 0; c < size.channels; ++c) dx[c] += parameters.weight[c * size.taps + k] * dsum[c];
      }
    }
  }
}

}}  // namespace plumb::kernels
