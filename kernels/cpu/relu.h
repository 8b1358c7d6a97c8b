#pragma once
// max(x, 0), whose forward keeps one bit an element. KernelKind kReluForward and kReluBackward.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// Returns the 32-bit words of a mask of `count` elements.
constexpr std::int64_t relu_mask_words(std::int64_t count) {
  return (count + 31) / 32;
}

/// x := max(x, 0); the mask's bit says x > 0. x: [count], mask: [relu_mask_words(count)]
void relu_forward(float* x, std::uint32_t* mask, std::int64_t count);

/// Replaces dy by the gradient of the input: an element becomes 0 where the mask's bit is 0. dy: [count], mask:
/// [relu_mask_words(count)]
void relu_backward(float* dy, const std::uint32_t* mask, std::int64_t count);

}}  // namespace plumb::kernels
