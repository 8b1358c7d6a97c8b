#include "simulator/noise/portable_math.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_SUITE("unit") {
  TEST_CASE("the exponential is that of the library to 1e-15, and exact at 0") {
    CHECK(portable_exp(0) == 1);
    double worst = 0;
    for (double x = -700; x <= 700; x += 0.0997) worst = std::max(worst, std::abs(portable_exp(x) / std::exp(x) - 1));
    CHECK(worst < 1e-15);
  }

  TEST_CASE("the logarithm is that of the library to 1e-15, and exact at 1") {
    CHECK(portable_log(1) == 0);
    double worst = 0;
    for (double x = 1e-300; x < 1e300; x *= 1.37) {
      worst = std::max(worst, std::abs(portable_log(x) - std::log(x)) / (1 + std::abs(std::log(x))));
    }
    CHECK(worst < 1e-15);
  }

  TEST_CASE("their bits are the same on every machine") {
    // These are the results of the same formulas in Python's floats, which are IEEE 754's too; the library's logarithm
    // ends in ...16.
    CHECK(portable_exp(1.5) == 0x1.1ed3fe64fc541p+2);
    CHECK(portable_log(10) == 0x1.26bb1bbb55515p+1);
  }
}

}  // namespace plumb::test
