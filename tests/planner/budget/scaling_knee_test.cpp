#include "planner/budget/scaling_knee.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("an elasticity is one where rates grow with devices, and none where they do not") {
  CHECK(scaling_elasticity({8, 100}, {16, 200}) == doctest::Approx(1));
  CHECK(scaling_elasticity({8, 100}, {32, 200}) == doctest::Approx(0.5));
  CHECK(scaling_elasticity({8, 100}, {16, 100}) == 0);
}

TEST_CASE("the knee is where a doubling gives less than the root of two") {
  CHECK(scaling_knee({{8, 100}, {16, 195}, {32, 350}, {64, 450}, {128, 500}}) == 2);
  CHECK(!scaling_knee({{8, 100}, {16, 195}, {32, 350}}));
  CHECK(!scaling_knee({{8, 100}}));
  CHECK(!scaling_knee({}));
}

TEST_CASE("a number of devices that the model divides badly is no knee") {
  CHECK(!scaling_knee({{8, 100}, {12, 102}, {16, 195}}));
  CHECK(scaling_knee({{8, 100}, {12, 102}, {16, 195}, {32, 200}}) == 2);
}

}  // namespace plumb::test
