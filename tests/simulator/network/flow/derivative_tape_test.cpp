#include "simulator/network/flow/derivative_tape.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a moment's derivative adds up over all ways that lead to it") {
  DerivativeTape tape;
  // a = 3 x, b = a + y, c = 2 a - b + y: c = a + 0 y, so 3 by x.
  const auto a = tape.add({DerivativeTape::by(0, 3)});
  const auto b = tape.add({DerivativeTape::of(a, 1), DerivativeTape::by(1, 1)});
  const auto c = tape.add({DerivativeTape::of(a, 2), DerivativeTape::of(b, -1), DerivativeTape::by(1, 1)});
  CHECK(tape.gradient(c, 2) == std::vector<double>{3, 0});
  CHECK(tape.gradient(b, 3) == std::vector<double>{3, 1, 0});
  CHECK(tape.gradient(DerivativeTape::kConstant, 1) == std::vector<double>{0});
  const auto same = tape.add({DerivativeTape::of(DerivativeTape::kConstant, 5), DerivativeTape::by(1, 2)});
  CHECK(tape.gradient(same, 2) == std::vector<double>{0, 2});
}

}  // namespace plumb::test
