#pragma once
// max(x, 0) behind a bias on a GPU (kernels/cpu/relu.h), which keeps a bit an element. A lane takes the eight elements
// of a byte of the mask.

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

inline constexpr std::int64_t kMaskBits = 8;

/// Returns the bytes of the mask of so many elements.
PLUMB_SIMT std::int64_t relu_mask_bytes(std::int64_t elements) {
  return (elements + kMaskBits - 1) / kMaskBits;
}

/// x := max(x + bias, 0). The mask's bits say which elements are above 0. x: [rows, columns]; bias: [columns], fp32,
/// null counts as zeros; mask: [relu_mask_bytes(rows * columns)]
template <class S>
struct ReluForward {
  S* x;
  std::uint8_t* mask;
  const float* bias;
  std::int64_t rows;
  std::int64_t columns;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t elements = rows * columns;
    for_each_element(thread, relu_mask_bytes(elements), [&](std::int64_t byte) {
      unsigned bits = 0;
      for (std::int64_t k = 0; k < kMaskBits; ++k) {
        const std::int64_t i = byte * kMaskBits + k;
        if (i >= elements) break;
        const float sum = widened(x[i]) + (bias == nullptr ? 0.0F : bias[i % columns]);
        store(x[i], sum > 0 ? sum : 0.0F);
        if (sum > 0) bits |= 1U << k;
      }
      mask[byte] = static_cast<std::uint8_t>(bits);
    });
  }
};

/// Replaces dy by the gradient of the input: an element becomes 0 where the mask's bit is 0. dy: [elements]
template <class S>
struct ReluBackward {
  S* dy;
  const std::uint8_t* mask;
  std::int64_t elements;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, elements, [&](std::int64_t i) {
      if ((mask[i / kMaskBits] >> (i % kMaskBits) & 1U) == 0) store(dy[i], 0.0F);
    });
  }
};

}}}  // namespace plumb::kernels::simt
