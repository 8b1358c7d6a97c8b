#pragma once
// Rotary position embedding on a GPU (kernels/cpu/rotary.h), in place. A thread turns a pair of channels.

#include "kernels/cpu/rotary.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Turns the heads of x. x: [T, row_width]; table: [s, rotary_size], fp32
template <class S>
struct Rotary {
  S* x;
  const float* table;
  RotarySize size;
  RotaryDirection direction;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t half = size.rotary_size / 2;
    const std::int64_t pairs = size.heads * half;  // pairs of one token
    for_each_element(thread, size.tokens * pairs, [&](std::int64_t i) {
      const std::int64_t token = i / pairs;
      const std::int64_t head = i % pairs / half;
      const std::int64_t channel = i % half;
      const float* row = table + token % size.sequence * size.rotary_size;
      const float cosine = row[channel];
      const float sine = direction == RotaryDirection::kForward ? row[half + channel] : -row[half + channel];
      S* first = x + token * size.row_width + head * size.head_size + channel;
      const float a = widened(first[0]);
      const float b = widened(first[half]);
      store(first[0], a * cosine - b * sine);
      store(first[half], a * sine + b * cosine);
    });
  }
};

}}}  // namespace plumb::kernels::simt
