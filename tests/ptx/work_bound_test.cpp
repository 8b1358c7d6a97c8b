#include "tests/ptx/work_bound.h"

#include <doctest/doctest.h>

namespace plumb::test::ptx {

// 10 multiprocessors at 1 GHz: 10 * 10^9 clocks a second.
constexpr UnitRates kRates{.memory_bytes = 1e12, .tensor_flops = 100e12, .fp32_flops = 2.56e12, .fp32_lanes = 128};

TEST_CASE("a bound is the work of the busiest unit at its published rate, and names it") {
  const auto is = [](const Work& work, double microseconds, const std::string& unit) {
    const WorkBound bound = bound_of(work, kRates);
    return bound.unit == unit && bound.time.count() == doctest::Approx(microseconds * 1e-6).epsilon(1e-12);
  };
  CHECK(is({.memory_bytes = 5'000'000}, 5, "bytes"));
  CHECK(is({.tensor_flops = 3e8}, 3, "tensor cores"));
  // 128 lanes are 4 warps a clock.
  CHECK(is({.issued = 40'000, .fp32 = 80'000}, 2, "fp32"));
  // 16 lanes are half a warp a clock.
  CHECK(is({.issued = 5'000, .special = 5'000}, 1, "special functions"));
  CHECK(is({.issued = 40'000}, 1, "issue slots"));
  CHECK(is({.issued = 40'000, .shared_passes = 20'000}, 2, "shared memory"));
  CHECK(is({.issued = 40'000, .tensor_flops = 3e8, .memory_bytes = 5'000'000}, 5, "bytes"));
}

TEST_CASE("half the lanes of fp32 leave the same peak, and twice the clocks") {
  UnitRates narrow = kRates;
  narrow.fp32_lanes = 64;
  CHECK(bound_of({.fp32 = 80'000}, narrow).time == bound_of({.fp32 = 80'000}, kRates).time);
  CHECK(bound_of({.special = 80'000}, narrow).time.count() ==
        doctest::Approx(bound_of({.special = 80'000}, kRates).time.count() / 2));
}

}  // namespace plumb::test::ptx
