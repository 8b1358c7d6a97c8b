#pragma once
// max(x, 0), of which a bit an element is kept. KernelKind kReluForward and kReluBackward.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// Words of 32 bits that a mask of `count` elements has.
constexpr std::int64_t relu_mask_words(std::int64_t count) {
  return (count + 31) / 32;
}

/// x := max(x, 0); the mask's bit says x > 0. x: [count], mask: [relu_mask_words(count)]
void relu_forward(float* x, std::uint32_t* mask, std::int64_t count);

/// dy := its gradient: 0 where the mask's bit is. dy: [count], mask: [relu_mask_words(count)]
void relu_backward(float* dy, const std::uint32_t* mask, std::int64_t count);

}}  // namespace plumb::kernels
