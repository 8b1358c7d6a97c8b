#include "planner/logs/median_estimate.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("one observation has no standard error, and none has no value") {
  CHECK_FALSE(median_of({3}).standard_error);
  CHECK(median_of({3}).value == 3);
  CHECK(median_of({}).observations == 0);
  CHECK(median_of({1, 2, 30, 4}).value == 3);
}

}  // namespace plumb::test
