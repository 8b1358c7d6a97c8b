// Instructions that compute a lane's result from its own operands. Expected values follow the PTX ISA's text.

#include <doctest/doctest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "tests/ptx/small_kernel.h"

namespace plumb::test::ptx {
namespace {

/// Returns the word that a body leaves in %r1.
std::uint32_t word_of(const std::string& body) {
  SmallKernel kernel(body + "\nst.global.u32 [%d2], %r1;");
  for (const Fault& fault : kernel.run({.threads = 1})) FAIL_CHECK(fault.text);
  return kernel.out[0];
}
/// The low and the high word of what a body leaves in %d5.
std::uint64_t wide_of(const std::string& body) {
  const std::uint64_t low = word_of(body + "mov.b64 {%r1, %r2}, %d5;");
  return std::uint64_t{word_of(body + "mov.b64 {%r2, %r1}, %d5;")} << 32 | low;
}
/// The number in %f1.
float float_of(const std::string& body) {
  return std::bit_cast<float>(word_of(body + "mov.b32 %r1, %f1;"));
}
/// 1 if a body makes %p1 true.
bool is_true(const std::string& body) {
  return word_of(body + "selp.u32 %r1, 1, 0, %p1;") == 1;
}

/// The literal of a float's bits.
std::string literal(float value) {
  return fmt::format("0f{:08X}", std::bit_cast<std::uint32_t>(value));
}

}  // namespace

TEST_CASE("integers wrap, divide towards zero and have an upper half") {
  CHECK(word_of("add.s32 %r1, 2147483647, 1;") == 0x80000000U);
  CHECK(word_of("sub.u32 %r1, 1, 2;") == 0xFFFFFFFFU);
  CHECK(word_of("mul.lo.s32 %r1, 65537, 65537;") == 131073U);
  CHECK(word_of("mul.hi.s32 %r1, -2, 3;") == 0xFFFFFFFFU);
  CHECK(word_of("mul.hi.u32 %r1, 0xfffffffe, 3;") == 2U);
  CHECK(word_of("mad.lo.s32 %r1, 7, -2, 3;") == static_cast<std::uint32_t>(-11));
  CHECK(word_of("div.s32 %r1, -7, 2;") == static_cast<std::uint32_t>(-3));
  CHECK(word_of("rem.s32 %r1, -7, 2;") == static_cast<std::uint32_t>(-1));
  CHECK(word_of("div.u32 %r1, -7, 2;") == 0x7FFFFFFCU);
  CHECK(word_of("min.s32 %r1, -7, 2;") == static_cast<std::uint32_t>(-7));
  CHECK(word_of("max.u32 %r1, -7, 2;") == static_cast<std::uint32_t>(-7));
  CHECK(word_of("neg.s32 %r1, 5;") == static_cast<std::uint32_t>(-5));
  CHECK(word_of("abs.s32 %r1, -5;") == 5U);
  CHECK(wide_of("mul.wide.s32 %d5, -3, 5;") == static_cast<std::uint64_t>(-15));
  CHECK(wide_of("mul.wide.u32 %d5, -1, -1;") == 0xFFFFFFFE00000001U);
  CHECK(wide_of("mul.hi.u64 %d5, -1, 16;") == 15U);
  CHECK(wide_of("mul.hi.s64 %d5, -1, 16;") == ~std::uint64_t{0});
  CHECK(wide_of("mul.lo.s64 %d5, -3, 5;") == static_cast<std::uint64_t>(-15));
  CHECK(wide_of("rem.s64 %d5, 17, 5;") == 2U);
}

TEST_CASE("shifts by the width or more leave zeros or the sign") {
  CHECK(word_of("shl.b32 %r1, 1, 31;") == 0x80000000U);
  CHECK(word_of("shl.b32 %r1, 1, 32;") == 0U);
  CHECK(word_of("shr.u32 %r1, 0x80000000, 33;") == 0U);
  CHECK(word_of("shr.s32 %r1, 0x80000000, 33;") == 0xFFFFFFFFU);
  CHECK(word_of("shr.s32 %r1, -8, 1;") == static_cast<std::uint32_t>(-4));
  CHECK(wide_of("shl.b64 %d5, 1, 40;") == std::uint64_t{1} << 40);
  CHECK(word_of("shf.l.wrap.b32 %r1, 0x80000000, 1, 1;") == 3U);
  CHECK(word_of("shf.r.wrap.b32 %r1, 2, 1, 1;") == 0x80000001U);
}

TEST_CASE("bits are picked, counted and combined") {
  CHECK(word_of("prmt.b32 %r1, 0x33221100, 0x77665544, 0x7061;") == 0x77006611U);
  CHECK(word_of("prmt.b32 %r1, 0x80, 0, 0x8880;") == 0xFFFFFF80U);
  CHECK(word_of("bfi.b32 %r1, 0xFFFFFFFF, 0, 8, 4;") == 0xF00U);
  CHECK(word_of("bfi.b32 %r1, 0, 0xFFFFFFFF, 28, 9;") == 0x0FFFFFFFU);  // what reaches beyond the word is left out
  CHECK(word_of("bfi.b32 %r1, 0xAB, 0x12345678, 32, 8;") == 0x12345678U);
  CHECK(word_of("popc.b32 %r1, 0xf0f;") == 8U);
  CHECK(word_of("clz.b32 %r1, 0xf0f;") == 20U);
  CHECK(word_of("and.b32 %r2, 12, 10; or.b32 %r3, %r2, 1; xor.b32 %r4, %r3, 3; not.b32 %r1, %r4;") == ~10U);
  CHECK(word_of("mov.b32 {%h1, %h2}, 0x12345678; mov.b32 %r1, {%h2, %h1};") == 0x56781234U);
}

TEST_CASE("predicates are compared, combined and select") {
  CHECK(is_true("setp.lt.s32 %p1, -1, 1;"));
  CHECK(!is_true("setp.lt.u32 %p1, -1, 1;"));
  CHECK(is_true("setp.ge.s64 %p1, 3, 3;"));
  CHECK(
      is_true("setp.eq.s32 %p2, 1, 1; setp.ne.s32 %p3, 1, 1; xor.pred %p4, %p2, %p3; not.pred %p5, %p3; "
              "and.pred %p6, %p4, %p5; or.pred %p1, %p3, %p6;"));
  const std::string nan = literal(std::numeric_limits<float>::quiet_NaN()), one = literal(1);
  for (const std::string ordered : {"eq", "ne", "lt", "le", "gt", "ge", "num"})
    CHECK(!is_true("setp." + ordered + ".f32 %p1, " + nan + ", " + one + ";"));
  for (const std::string unordered : {"equ", "neu", "ltu", "leu", "gtu", "geu", "nan"})
    CHECK(is_true("setp." + unordered + ".f32 %p1, " + one + ", " + nan + ";"));
  CHECK(!is_true("setp.gtu.f32 %p1, " + one + ", " + one + ";"));
  CHECK(is_true("setp.equ.f32 %p1, " + one + ", " + one + ";"));
}

TEST_CASE("sums and products round as they say") {
  const float tiny = 0x1p-30F;
  const std::string operands = literal(1) + ", " + literal(tiny) + ";";
  CHECK(float_of("add.f32 %f1, " + operands) == 1);
  CHECK(float_of("add.rm.f32 %f1, " + operands) == 1);
  CHECK(float_of("add.rp.f32 %f1, " + operands) == 1 + 0x1p-23F);
  CHECK(float_of("sub.rz.f32 %f1, " + operands) == 1 - 0x1p-24F);
  // The product alone would round to 1, and the sum to 0.
  const std::string near_one = literal(1 + 0x1p-23F);
  CHECK(float_of("fma.rn.f32 %f1, " + near_one + ", " + near_one + ", " + literal(-1 - 0x1p-22F) + ";") == 0x1p-46F);
  CHECK(float_of("fma.rm.f32 %f1, " + literal(tiny) + ", " + literal(-tiny) + ", " + literal(1) + ";") == 1 - 0x1p-24F);
  CHECK(float_of("rcp.rn.f32 %f1, " + literal(3) + ";") == 1 / 3.0F);
  CHECK(float_of("div.rn.f32 %f1, " + literal(2) + ", " + literal(3) + ";") == 2 / 3.0F);
  CHECK(float_of("sqrt.rn.f32 %f1, " + literal(2) + ";") == std::sqrt(2.0F));
  CHECK(std::fegetround() == FE_TONEAREST);
}

TEST_CASE("the smaller of a number and NaN is the number, and of two zeros the negative one") {
  const std::string nan = literal(std::numeric_limits<float>::quiet_NaN());
  CHECK(float_of("min.f32 %f1, " + nan + ", " + literal(3) + ";") == 3);
  CHECK(float_of("max.f32 %f1, " + literal(3) + ", " + nan + ";") == 3);
  CHECK(std::signbit(float_of("min.f32 %f1, " + literal(0) + ", " + literal(-0.0F) + ";")));
  CHECK(!std::signbit(float_of("max.f32 %f1, " + literal(0) + ", " + literal(-0.0F) + ";")));
  CHECK(float_of("copysign.f32 %f1, " + literal(-2) + ", " + literal(3) + ";") == -3);
}

TEST_CASE("approximations are near, and .ftz takes subnormal numbers for zeros") {
  CHECK(float_of("ex2.approx.ftz.f32 %f1, " + literal(3) + ";") == 8);
  CHECK(float_of("ex2.approx.f32 %f1, " + literal(-140) + ";") == 0x1p-140F);
  CHECK(float_of("ex2.approx.ftz.f32 %f1, " + literal(-140) + ";") == 0);
  CHECK(float_of("lg2.approx.ftz.f32 %f1, " + literal(0x1p-140F) + ";") == -std::numeric_limits<float>::infinity());
  CHECK(float_of("lg2.approx.f32 %f1, " + literal(8) + ";") == 3);
  CHECK(float_of("rcp.approx.ftz.f32 %f1, " + literal(4) + ";") == 0.25F);
  CHECK(float_of("rsqrt.approx.f32 %f1, " + literal(4) + ";") == 0.5F);
  CHECK(float_of("tanh.approx.f32 %f1, " + literal(20) + ";") == 1);
  CHECK(float_of("div.full.f32 %f1, " + literal(1) + ", " + literal(4) + ";") == 0.25F);
}

TEST_CASE("numbers are converted with their sign, their rounding and their limits") {
  CHECK(word_of("cvt.u16.u32 %h1, 0x12345678; cvt.s32.s16 %r1, %h1;") == 0x5678U);
  CHECK(word_of("cvt.u16.u32 %h1, 0xffff; cvt.s32.s16 %r1, %h1;") == 0xFFFFFFFFU);
  CHECK(word_of("cvt.u16.u32 %h1, 0x1ff; cvt.u32.u8 %r1, %h1;") == 0xFFU);
  CHECK(wide_of("cvt.s64.s32 %d5, -2;") == static_cast<std::uint64_t>(-2));
  CHECK(wide_of("cvt.u64.u32 %d5, -2;") == 0xFFFFFFFEU);
  CHECK(float_of("cvt.rn.f32.s32 %f1, -7;") == -7);
  CHECK(float_of("cvt.rn.f32.u64 %f1, -1;") == 0x1p64F);
  const auto to_integer = [](const std::string& way, float value) {
    return static_cast<std::int32_t>(word_of("cvt." + way + ".s32.f32 %r1, " + literal(value) + ";"));
  };
  CHECK(to_integer("rzi", -2.5F) == -2);
  CHECK(to_integer("rni", -2.5F) == -2);
  CHECK(to_integer("rni", 3.5F) == 4);
  CHECK(to_integer("rmi", -2.5F) == -3);
  CHECK(to_integer("rpi", 2.25F) == 3);
  CHECK(to_integer("rzi", 1e20F) == std::numeric_limits<std::int32_t>::max());
  CHECK(to_integer("rzi", std::numeric_limits<float>::quiet_NaN()) == 0);
  CHECK(float_of("cvt.rzi.f32.f32 %f1, " + literal(-2.5F) + ";") == -2);
  CHECK(float_of("cvt.sat.f32.f32 %f1, " + literal(2.5F) + ";") == 1);
  CHECK(float_of("cvt.sat.f32.f32 %f1, " + literal(std::numeric_limits<float>::quiet_NaN()) + ";") == 0);
}

TEST_CASE("16-bit formats round to nearest even, and pairs have the first number above") {
  CHECK(word_of("cvt.rn.bf16.f32 %h1, " + literal(1 + 0x1p-8F) + "; cvt.u32.u16 %r1, %h1;") == 0x3F80U);
  CHECK(word_of("cvt.rn.f16.f32 %h1, " + literal(65520) + "; cvt.u32.u16 %r1, %h1;") == 0x7C00U);
  CHECK(float_of("mov.b16 %h1, 0x3c01; cvt.f32.f16 %f1, %h1;") == 1 + 0x1p-10F);
  CHECK(word_of("cvt.rn.bf16x2.f32 %r1, " + literal(1) + ", " + literal(-2) + ";") == 0x3F80C000U);
  CHECK(word_of("cvt.rn.f16x2.f32 %r1, " + literal(1) + ", " + literal(-2) + ";") == 0x3C00C000U);
}

}  // namespace plumb::test::ptx
