#include "planner/search/binding.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a resource stops binding where more of it changes the step by less than a thousandth") {
  CHECK(unbound_from({{50, 6.2}, {10, 9.0}, {100, 6.1995}, {200, 6.1994}}) == 50);
  CHECK(unbound_from({{10, 6.2}, {20, 6.2}}) == 10);
  CHECK(!unbound_from({{10, 9}, {20, 7}, {40, 6}}));
  CHECK(!unbound_from({{10, 9}}));
  CHECK(!unbound_from({}));
}

}  // namespace plumb::test
