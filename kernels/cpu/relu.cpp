#include "kernels/cpu/relu.h"

#include <algorithm>

namespace plumb { inline namespace kernels {
namespace {

constexpr std::int64_t kBits = 32;

}  // namespace

void relu_forward(float* x, std::uint32_t* mask, std::int64_t count) {
  for (std::int64_t word = 0; word < relu_mask_words(count); ++word) {
    std::uint32_t bits = 0;
    const std::int64_t end = std::min(kBits, count - word * kBits);
    for (std::int64_t bit = 0; bit < end; ++bit) {
      float& value = x[word * kBits + bit];
      const bool passes = value > 0;
      bits |= static_cast<std::uint32_t>(passes) << bit;
      value = passes ? value : 0.0F;
    }
    mask[word] = bits;
  }
}

void relu_backward(float* dy, const std::uint32_t* mask, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if ((mask[i / kBits] >> (i % kBits) & 1U) == 0) dy[i] = 0.0F;
}

}}  // namespace plumb::kernels
