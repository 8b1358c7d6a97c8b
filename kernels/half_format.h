#pragma once
// The formats of 16-bit numbers, which all backends share.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// bfloat16 (Kalamkar et al. 2019), and IEEE 754's binary16.
enum class HalfFormat : std::uint8_t { kBf16, kFp16 };

inline constexpr float kLargestFp16 = 65504.0F;

}}  // namespace plumb::kernels
