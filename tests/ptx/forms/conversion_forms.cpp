// cvt: between widths, between integers and floating point, and to the 16-bit formats of tensors.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/cpu/half.h"
#include "tests/ptx/forms/elementwise.h"

namespace plumb::test::ptx {
namespace {

/// Converts the low bytes of a register, which may be wider than its type (PTX ISA 9.0, "Operand Size Exceeding
/// Instruction-Type Size").
template <class From, class To, To (*kFunction)(From)>
void convert(Warp& warp, const Instruction& in, LaneMask lanes) {
  LaneValues<To> to(warp, in.at[0]);
  const std::byte* const registers = warp.lanes<std::byte>(in.at[1]);
  for_each_lane(lanes, [&](int lane) {
    From value;
    std::memcpy(&value, registers + lane * in.bytes[1], sizeof(From));
    to.set(lane, kFunction(value));
  });
}

/// Truncates, or extends by zeros or the sign. Numbers of 8 bits lie in registers of 16.
template <class To, class From>
auto converted_integer(From a) {
  using Widest =
      std::conditional_t<sizeof(To) == 1, std::conditional_t<std::is_signed_v<To>, std::int16_t, std::uint16_t>, To>;
  return static_cast<Widest>(static_cast<To>(a));
}

template <class To, class From>
void add_conversion(FormTable& table, const std::string& to, const std::string& from) {
  using Result = decltype(converted_integer<To, From>(From{}));
  table.add("cvt." + to + "." + from,
            {.run = convert<From, Result, converted_integer<To, From>>, .slots = {slot_of<Result>(), Slot::kAny}});
}

template <class From>
void add_from_integer(FormTable& table, const std::string& from) {
  add_conversion<std::int8_t, From>(table, "s8", from);
  add_conversion<std::uint8_t, From>(table, "u8", from);
  add_conversion<std::int16_t, From>(table, "s16", from);
  add_conversion<std::uint16_t, From>(table, "u16", from);
  add_conversion<std::int32_t, From>(table, "s32", from);
  add_conversion<std::uint32_t, From>(table, "u32", from);
  add_conversion<std::int64_t, From>(table, "s64", from);
  add_conversion<std::uint64_t, From>(table, "u64", from);
  add_conversion<float, From>(table, "rn.f32", from);
  add_conversion<double, From>(table, "rn.f64", from);
}

/// Clamps to what To has. NaN becomes zero, but the smallest (or 2^63) where 64 bits take part.
template <class To, class From>
To clamped(From whole) {
  using Limits = std::numeric_limits<To>;
  constexpr bool is_wide = sizeof(To) == 8 || sizeof(From) == 8;
  if (std::isnan(whole)) return is_wide ? static_cast<To>(std::uint64_t{1} << (8 * sizeof(To) - 1)) : To{0};
  if (whole <= static_cast<From>(Limits::min())) return Limits::min();
  if (whole >= static_cast<From>(Limits::max())) return Limits::max();
  return static_cast<To>(whole);
}

template <class To, class From>
void add_to_integer(FormTable& table, const std::string& types) {
  add_elementwise<[](From a) { return clamped<To>(std::trunc(a)); }>(table, "cvt.rzi." + types);
  add_elementwise<[](From a) { return clamped<To>(std::nearbyint(a)); }>(table, "cvt.rni." + types);
  add_elementwise<[](From a) { return clamped<To>(std::floor(a)); }>(table, "cvt.rmi." + types);
  add_elementwise<[](From a) { return clamped<To>(std::ceil(a)); }>(table, "cvt.rpi." + types);
}

template <class From>
void add_from_float(FormTable& table, const std::string& from) {
  add_to_integer<std::int32_t, From>(table, "s32." + from);
  add_to_integer<std::uint32_t, From>(table, "u32." + from);
  add_to_integer<std::int64_t, From>(table, "s64." + from);
  add_to_integer<std::uint64_t, From>(table, "u64." + from);
  const std::string same = from + "." + from;
  add_elementwise<[](From a) { return std::trunc(a); }>(table, "cvt.rzi." + same);
  add_elementwise<[](From a) { return std::nearbyint(a); }>(table, "cvt.rni." + same);
  add_elementwise<[](From a) { return std::floor(a); }>(table, "cvt.rmi." + same);
  add_elementwise<[](From a) { return std::ceil(a); }>(table, "cvt.rpi." + same);
  // NaN becomes zero.
  add_elementwise<[](From a) { return std::isnan(a) ? From{0} : std::clamp(a, From{0}, From{1}); }>(table,
                                                                                                    "cvt.sat." + same);
}

std::uint32_t packed(std::uint16_t high, std::uint16_t low) {
  return std::uint32_t{high} << 16 | low;
}

void add_sixteen_bit_formats(FormTable& table) {
  add_elementwise<[](std::uint16_t a) { return widen_fp16(a); }>(table, "cvt.f32.f16");
  add_elementwise<[](std::uint16_t a) { return widen_bf16(a); }>(table, "cvt.f32.bf16");
  add_elementwise<[](float a) { return narrow_to_fp16(a); }>(table, "cvt.rn.f16.f32");
  add_elementwise<[](float a) { return narrow_to_bf16(a); }>(table, "cvt.rn.bf16.f32");
  // The first operand goes into the upper half.
  add_elementwise<[](float a, float b) { return packed(narrow_to_fp16(a), narrow_to_fp16(b)); }>(table,
                                                                                                 "cvt.rn.f16x2.f32");
  add_elementwise<[](float a, float b) { return packed(narrow_to_bf16(a), narrow_to_bf16(b)); }>(table,
                                                                                                 "cvt.rn.bf16x2.f32");
}

}  // namespace

void add_conversion_forms(FormTable& table) {
  add_from_integer<std::int8_t>(table, "s8");
  add_from_integer<std::uint8_t>(table, "u8");
  add_from_integer<std::int16_t>(table, "s16");
  add_from_integer<std::uint16_t>(table, "u16");
  add_from_integer<std::int32_t>(table, "s32");
  add_from_integer<std::uint32_t>(table, "u32");
  add_from_integer<std::int64_t>(table, "s64");
  add_from_integer<std::uint64_t>(table, "u64");
  add_from_float<float>(table, "f32");
  add_from_float<double>(table, "f64");
  add_elementwise<[](float a) { return static_cast<double>(a); }>(table, "cvt.f64.f32");
  add_elementwise<[](double a) { return static_cast<float>(a); }>(table, "cvt.rn.f32.f64");
  add_sixteen_bit_formats(table);
}

}  // namespace plumb::test::ptx
