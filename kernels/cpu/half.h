#pragma once
// Conversions to and from 16-bit numbers. Narrowing rounds to the nearest, ties to even; a number beyond the largest
// one becomes infinity, and a NaN stays one. Widening is exact.

#include <cstdint>

#include "kernels/half_format.h"

namespace plumb { inline namespace kernels {

std::uint16_t narrow_to_bf16(float value);
std::uint16_t narrow_to_fp16(float value);
float widen_bf16(std::uint16_t bits);
float widen_fp16(std::uint16_t bits);

/// Converts an array. narrow, wide: [elements]
void narrow(std::uint16_t* narrow, const float* wide, std::int64_t elements, HalfFormat format);
void widen(float* wide, const std::uint16_t* narrow, std::int64_t elements, HalfFormat format);

}}  // namespace plumb::kernels
