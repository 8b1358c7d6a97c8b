// Integers. Sums and products wrap. A division by zero gives all bits set, as on NVIDIA's devices (PTX leaves
// it open).

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "tests/ptx/forms/elementwise.h"

namespace plumb::test::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
bool has_no_quotient(T a, T b) {
  return b == 0 || (std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == static_cast<T>(-1));
}
template <class T>
T quotient(T a, T b) {
  if (has_no_quotient(a, b)) return b == 0 ? static_cast<T>(-1) : a;
  return static_cast<T>(a / b);
}
template <class T>
T remainder_of(T a, T b) {
  if (has_no_quotient(a, b)) return b == 0 ? a : T{0};
  return static_cast<T>(a % b);
}

/// The upper half of a product.
template <class T>
T high_product(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    __extension__ using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>((Wide{a} * Wide{b}) >> (8 * sizeof(T)));
  }
}

/// Shifts by the width or more leave zeros, or the sign.
template <class T>
T shifted_right(T a, std::uint32_t by) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  if (by >= kBits) return a < 0 ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> by);
}

template <class T>
void add_arithmetic(FormTable& table, const std::string& type) {
  using U = Unsigned<T>;
  add_elementwise<[](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); }>(table, "add." + type);
  add_elementwise<[](T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); }>(table, "sub." + type);
  // The product is taken in 64 bits, since 16-bit factors would be promoted to int.
  constexpr auto product = [](T a, T b) {
    return static_cast<T>(std::uint64_t{static_cast<U>(a)} * static_cast<U>(b));
  };
  add_elementwise<product>(table, "mul.lo." + type);
  add_elementwise<[](T a, T b, T c) {
    return static_cast<T>(std::uint64_t{static_cast<U>(a)} * static_cast<U>(b) + static_cast<U>(c));
  }>(table, "mad.lo." + type);
  add_elementwise<[](T a, T b) { return high_product(a, b); }>(table, "mul.hi." + type);
  add_elementwise<[](T a, T b) { return quotient(a, b); }>(table, "div." + type);
  add_elementwise<[](T a, T b) { return remainder_of(a, b); }>(table, "rem." + type);
  add_elementwise<[](T a, T b) { return std::min(a, b); }>(table, "min." + type);
  add_elementwise<[](T a, T b) { return std::max(a, b); }>(table, "max." + type);
  add_elementwise<[](T a, std::uint32_t by) { return shifted_right(a, by); }>(table, "shr." + type);
  if constexpr (std::is_signed_v<T>) {
    add_elementwise<[](T a) { return static_cast<T>(U{0} - static_cast<U>(a)); }>(table, "neg." + type);
    add_elementwise<[](T a) { return static_cast<T>(a < 0 ? U{0} - static_cast<U>(a) : static_cast<U>(a)); }>(
        table, "abs." + type);
  }
}

/// Products twice as wide as their factors.
template <class T, class Wide>
void add_wide(FormTable& table, const std::string& type) {
  add_elementwise<[](T a, T b) { return static_cast<Wide>(Wide{a} * Wide{b}); }>(table, "mul.wide." + type);
  add_elementwise<[](T a, T b, Wide c) {
    using U = Unsigned<Wide>;
    return static_cast<Wide>(static_cast<U>(Wide{a} * Wide{b}) + static_cast<U>(c));
  }>(table, "mad.wide." + type);
}

template <class T>
void add_bitwise(FormTable& table, const std::string& type) {
  add_elementwise<[](T a, T b) { return static_cast<T>(a & b); }>(table, "and." + type);
  add_elementwise<[](T a, T b) { return static_cast<T>(a | b); }>(table, "or." + type);
  add_elementwise<[](T a, T b) { return static_cast<T>(a ^ b); }>(table, "xor." + type);
  add_elementwise<[](T a) { return static_cast<T>(~a); }>(table, "not." + type);
  add_elementwise<[](T a, std::uint32_t by) { return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << by); }>(
      table, "shl." + type);
  add_elementwise<[](T a, std::uint32_t by) { return shifted_right(a, by); }>(table, "shr." + type);
}

/// Picks four of the eight bytes of {b, a}; bit 3 of a selector spreads the byte's sign.
std::uint32_t permuted(std::uint32_t a, std::uint32_t b, std::uint32_t selectors) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t selector = selectors >> (4 * i) & 15;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (selector & 7))) & 255;
    if ((selector & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}

/// Returns `among` with the lowest `count` bits of `bits` in the place of those from `place` on. Both numbers count by
/// their low eight bits.
std::uint32_t inserted(std::uint32_t bits, std::uint32_t among, std::uint32_t place, std::uint32_t count) {
  constexpr std::uint32_t kByte = 0xFF;
  const std::uint64_t mask = ((std::uint64_t{1} << std::min(count & kByte, 32U)) - 1) << std::min(place & kByte, 32U);
  const std::uint64_t moved = std::uint64_t{bits} << std::min(place & kByte, 32U);
  return static_cast<std::uint32_t>((among & ~mask) | (moved & mask));
}

}  // namespace

void add_integer_forms(FormTable& table) {
  add_arithmetic<std::int16_t>(table, "s16");
  add_arithmetic<std::uint16_t>(table, "u16");
  add_arithmetic<std::int32_t>(table, "s32");
  add_arithmetic<std::uint32_t>(table, "u32");
  add_arithmetic<std::int64_t>(table, "s64");
  add_arithmetic<std::uint64_t>(table, "u64");
  add_wide<std::int16_t, std::int32_t>(table, "s16");
  add_wide<std::uint16_t, std::uint32_t>(table, "u16");
  add_wide<std::int32_t, std::int64_t>(table, "s32");
  add_wide<std::uint32_t, std::uint64_t>(table, "u32");
  add_bitwise<std::uint16_t>(table, "b16");
  add_bitwise<std::uint32_t>(table, "b32");
  add_bitwise<std::uint64_t>(table, "b64");
  add_elementwise<[](bool a, bool b) { return a && b; }>(table, "and.pred");
  add_elementwise<[](bool a, bool b) { return a || b; }>(table, "or.pred");
  add_elementwise<[](bool a, bool b) { return a != b; }>(table, "xor.pred");
  add_elementwise<[](bool a) { return !a; }>(table, "not.pred");
  add_elementwise<[](std::uint32_t a, std::uint32_t b, std::uint32_t by) {
    return static_cast<std::uint32_t>((std::uint64_t{b} << 32 | a) << (by & 31) >> 32);
  }>(table, "shf.l.wrap.b32");
  add_elementwise<[](std::uint32_t a, std::uint32_t b, std::uint32_t by) {
    return static_cast<std::uint32_t>((std::uint64_t{b} << 32 | a) >> (by & 31));
  }>(table, "shf.r.wrap.b32");
  add_elementwise<[](std::uint32_t a, std::uint32_t b, std::uint32_t selectors) { return permuted(a, b, selectors); }>(
      table, "prmt.b32");
  add_elementwise<[](std::uint32_t bits, std::uint32_t among, std::uint32_t place, std::uint32_t count) {
    return inserted(bits, among, place, count);
  }>(table, "bfi.b32");
  add_elementwise<[](std::uint32_t a) { return static_cast<std::uint32_t>(std::popcount(a)); }>(table, "popc.b32");
  add_elementwise<[](std::uint32_t a) { return static_cast<std::uint32_t>(std::countl_zero(a)); }>(table, "clz.b32");
}

}  // namespace plumb::test::ptx
