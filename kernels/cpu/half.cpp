#include "kernels/cpu/half.h"

#include <bit>
#include <cmath>

namespace plumb { inline namespace kernels {
namespace {

constexpr std::uint32_t kSignBit = 0x80000000U;
constexpr std::uint32_t kInfinity = 0x7F800000U;  // in binary32, without a sign
constexpr std::uint16_t kFp16Infinity = 0x7C00U;
constexpr int kFp16Fraction = 10, kSingleFraction = 23;

/// Drops the lowest `count` bits and rounds to the nearest, ties to even.
constexpr std::uint32_t drop_bits(std::uint32_t bits, int count) {
  const std::uint32_t half = 1U << (count - 1);
  return (bits + (half - 1) + ((bits >> count) & 1U)) >> count;
}

}  // namespace

std::uint16_t narrow_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & ~kSignBit) > kInfinity) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // a quiet NaN
  return static_cast<std::uint16_t>(drop_bits(bits, 16));
}

std::uint16_t narrow_to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits & kSignBit) >> 16);
  const std::uint32_t magnitude = bits & ~kSignBit;
  if (magnitude > kInfinity) return sign | kFp16Infinity | 0x200U;         // a quiet NaN
  constexpr std::uint32_t kLeastNormal = (127U - 14U) << kSingleFraction;  // 2^-14
  constexpr std::uint32_t kRebias = (127U - 15U) << kSingleFraction;
  constexpr std::uint32_t kTooLarge = (127U + 16U) << kSingleFraction;  // 2^16
  if (magnitude >= kTooLarge) return sign | kFp16Infinity;
  if (magnitude >= kLeastNormal)  // a carry out of the fraction raises the exponent, up to infinity
    return static_cast<std::uint16_t>(sign | drop_bits(magnitude - kRebias, kSingleFraction - kFp16Fraction));
  // The unit of a subnormal is 2^-24. The last place of 0.5 is 2^-24 too, so the sum with 0.5 rounds to that unit.
  const float sum = std::bit_cast<float>(magnitude) + 0.5F;
  return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5F)));
}

float widen_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float widen_fp16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude >= kFp16Infinity)
    return std::bit_cast<float>(sign | kInfinity | ((magnitude & 0x3FFU) << (kSingleFraction - kFp16Fraction)));
  constexpr std::uint32_t kRebias = (127U - 15U) << kFp16Fraction;
  if (magnitude >= 0x400U)
    return std::bit_cast<float>(sign | ((magnitude + kRebias) << (kSingleFraction - kFp16Fraction)));
  const float value = std::ldexp(static_cast<float>(magnitude), -24);
  return sign != 0 ? -value : value;
}

void narrow(std::uint16_t* narrow, const float* wide, std::int64_t elements, HalfFormat format) {
  for (std::int64_t i = 0; i < elements; ++i)
    narrow[i] = format == HalfFormat::kBf16 ? narrow_to_bf16(wide[i]) : narrow_to_fp16(wide[i]);
}

void widen(float* wide, const std::uint16_t* narrow, std::int64_t elements, HalfFormat format) {
  for (std::int64_t i = 0; i < elements; ++i)
    wide[i] = format == HalfFormat::kBf16 ? widen_bf16(narrow[i]) : widen_fp16(narrow[i]);
}

}}  // namespace plumb::kernels
