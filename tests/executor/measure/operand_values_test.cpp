#include "executor/measure/operand_values.h"

#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "kernels/cpu/half.h"

namespace plumb::test {

TEST_CASE("operands are numbers between -1 and 1 on both sides of 0, in 16 bits those of fp32, rounded") {
  constexpr std::size_t kValues = 1000;
  std::vector<float> wide(kValues);
  const std::vector<std::byte> stored = operand_values({}, kValues * 4);
  REQUIRE(stored.size() == kValues * 4);
  std::memcpy(wide.data(), stored.data(), stored.size());
  double sum = 0;
  for (const float value : wide) {
    CHECK(value >= -1);
    CHECK(value < 1);
    sum += value;
  }
  CHECK(std::set<float>(wide.begin(), wide.end()).size() > kValues * 9 / 10);
  CHECK(sum / kValues == doctest::Approx(0).epsilon(0.1));
  for (const HalfFormat format : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    std::vector<std::uint16_t> bits(kValues), expected(kValues);
    const std::vector<std::byte> half = operand_values(format, kValues * 2);
    REQUIRE(half.size() == kValues * 2);
    std::memcpy(bits.data(), half.data(), half.size());
    narrow(expected.data(), wide.data(), kValues, format);
    CHECK(bits == expected);
  }
}

}  // namespace plumb::test
