#include "kernels/cpu/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

using Narrow = std::uint16_t (*)(float);
using Widen = float (*)(std::uint16_t);

}  // namespace

TEST_CASE("every 16-bit number survives widening and narrowing") {
  for (const auto& [narrow, widen] :
       {std::pair<Narrow, Widen>{narrow_to_bf16, widen_bf16}, std::pair<Narrow, Widen>{narrow_to_fp16, widen_fp16}})
    for (std::uint32_t bits = 0; bits <= 0xFFFFU; ++bits) {
      const float value = widen(static_cast<std::uint16_t>(bits));
      if (std::isnan(value))
        REQUIRE(std::isnan(widen(narrow(value))));
      else
        REQUIRE(narrow(value) == bits);
    }
}

TEST_CASE("narrowing goes to the nearest, ties to the even one") {
  // The middle between neighbours a < b goes to the one with an even last bit; a number nearer to one goes to that one.
  for (const auto& [narrow, widen, infinity] :
       {std::tuple<Narrow, Widen, std::uint32_t>{narrow_to_bf16, widen_bf16, 0x7F80U},
        std::tuple<Narrow, Widen, std::uint32_t>{narrow_to_fp16, widen_fp16, 0x7C00U}})
    for (std::uint32_t bits = 0; bits + 1 < infinity; ++bits) {
      const double low = double(widen(static_cast<std::uint16_t>(bits)));
      const double high = double(widen(static_cast<std::uint16_t>(bits + 1)));
      const auto middle = static_cast<float>(low + (high - low) / 2);
      if (double(middle) != low + (high - low) / 2) continue;  // float cannot represent the middle
      REQUIRE(narrow(middle) == (bits % 2 == 0 ? bits : bits + 1));
      REQUIRE(narrow(std::nextafter(middle, 0.0F)) == bits);
      REQUIRE(narrow(std::nextafter(middle, INFINITY)) == bits + 1);
      REQUIRE(narrow(-middle) == (narrow(middle) | 0x8000U));
    }
}

TEST_CASE("what is too large becomes infinity and what is too small 0") {
  CHECK(widen_fp16(narrow_to_fp16(kLargestFp16)) == kLargestFp16);
  CHECK(widen_fp16(narrow_to_fp16(65519.0F)) == kLargestFp16);
  CHECK(widen_fp16(narrow_to_fp16(65520.0F)) == INFINITY);  // halfway to 65536, whose fraction is even
  CHECK(widen_fp16(narrow_to_fp16(-1e30F)) == -INFINITY);
  CHECK(widen_fp16(narrow_to_fp16(1e-9F)) == 0.0F);
  CHECK(widen_fp16(narrow_to_fp16(0x1p-24F)) == 0x1p-24F);
  CHECK(widen_bf16(narrow_to_bf16(std::numeric_limits<float>::max())) == INFINITY);
  CHECK(widen_bf16(narrow_to_bf16(INFINITY)) == INFINITY);
  CHECK(std::isnan(widen_bf16(narrow_to_bf16(std::bit_cast<float>(0x7F800001U)))));
}

TEST_CASE("arrays are narrowed and widened element by element") {
  const Values values = random_values(17, 4);
  std::vector<std::uint16_t> bits(17);
  Values back(17);
  narrow(bits.data(), values.data(), 17, HalfFormat::kBf16);
  widen(back.data(), bits.data(), 17, HalfFormat::kBf16);
  for (std::size_t i = 0; i < 17; ++i) CHECK(back[i] == widen_bf16(narrow_to_bf16(values[i])));
  narrow(bits.data(), values.data(), 17, HalfFormat::kFp16);
  widen(back.data(), bits.data(), 17, HalfFormat::kFp16);
  for (std::size_t i = 0; i < 17; ++i) CHECK(back[i] == widen_fp16(narrow_to_fp16(values[i])));
}

}  // namespace plumb::test
