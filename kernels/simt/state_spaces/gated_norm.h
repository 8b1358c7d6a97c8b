#pragma once
// The norm behind a state space on a GPU (kernels/cpu/state_spaces/gated_norm.h has the formula). A block takes a group
// of a row.

#include "kernels/cpu/state_spaces/gated_norm.h"
#include "kernels/simt/activation.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// out, y: [T, C]; rstd: [T, G]; z: [T, stride]; gain: [C]
template <class S>
struct GatedNormForward {
  S* out;
  float* rstd;
  const S* y;
  const S* z;
  const float* gain;
  GatedNormSize size;
  float epsilon;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t channels = size.columns / size.groups;
    for (std::int64_t item = thread.block(); item < size.rows * size.groups; item += thread.blocks()) {
      const std::int64_t row = item / size.groups, first = item % size.groups * channels;
      const S *own = y + row * size.columns + first, *gate = z + row * size.stride + first;
      const auto gated = [&](std::int64_t c) { return widened(own[c]) * silu(widened(gate[c])); };
      const float squares = sum_over_row(thread, channels, [&](std::int64_t c) { return gated(c) * gated(c); });
      const float scale = 1.0F / sqrtf(squares / static_cast<float>(channels) + epsilon);
      if (thread.lane() == 0) rstd[item] = scale;
      for (std::int64_t c = thread.lane(); c < channels; c += thread.lanes())
        store(out[row * size.columns + first + c], gated(c) * scale * gain[first + c]);
    }
  }
};

/// Adds the gain's gradient, and comes before GatedNormBackward. A thread takes a channel. dgain: [C]
template <class S>
struct GatedNormGain {
  float* dgain;
  const S* dout;
  const S* y;
  const S* z;
  const float* rstd;
  GatedNormSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t channels = size.columns / size.groups;
    for_each_element(thread, size.columns, [&](std::int64_t c) {
      float sum = 0;
      for (std::int64_t row = 0; row < size.rows; ++row)
        sum += widened(dout[row * size.columns + c]) * widened(y[row * size.columns + c]) *
               silu(widened(z[row * size.stride + c])) * rstd[row * size.groups + c / channels];
      dgain[c] += sum;
    });
  }
};

/// Writes y's gradient, and replaces z by its gradient. dy may be dout. dy, dout, y: [T, C]; z: [T, stride]
template <class S>
struct GatedNormBackward {
  S* dy;
  S* z;
  const S* dout;
  const S* y;
  const float* rstd;
  const float* gain;
  GatedNormSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t channels = size.columns / size.groups;
    for (std::int64_t item = thread.block(); item < size.rows * size.groups; item += thread.blocks()) {
      const std::int64_t row = item / size.groups, first = item % size.groups * channels;
      const std::int64_t at = row * size.columns + first;
      S* gate = z + row * size.stride + first;
      const auto scaled = [&](std::int64_t c) { return widened(dout[at + c]) * gain[first + c]; };
      const float sum = sum_over_row(
          thread, channels, [&](std::int64_t c) { return scaled(c) * widened(y[at + c]) * silu(widened(gate[c])); });
      const float scale = rstd[item], projection = sum * scale * scale / static_cast<float>(channels);
      for (std::int64_t c = thread.lane(); c < channels; c += thread.lanes()) {
        const float own = widened(y[at + c]), before = widened(gate[c]), open = silu(before);
        const float du = scale * (scaled(c) - own * open * projection);
        store(gate[c], du * own * silu_slope(before));
        store(dy[at + c], du * open);
      }
    }
  }
};

}}}  // namespace plumb::kernels::simt
