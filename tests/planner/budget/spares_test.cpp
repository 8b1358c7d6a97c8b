#include "planner/budget/spares.h"

#include <cmath>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("as few spares as cover a Poisson number of nodes under repair") {
  CHECK(spare_nodes(0, 0.99) == 0);
  // P(0) = 0.368, P(<= 3) = 0.981, P(<= 4) = 0.996 for a mean of 1.
  CHECK(spare_nodes(1, 0.3) == 0);
  CHECK(spare_nodes(1, 0.98) == 3);
  CHECK(spare_nodes(1, 0.99) == 4);
}

TEST_CASE("many nodes under repair need the mean and 2.33 deviations") {
  for (const double mean : {400.0, 499.0, 501.0, 5000.0}) {
    CAPTURE(mean);
    CHECK(std::abs(spare_nodes(mean, 0.99) - (mean + 2.326 * std::sqrt(mean))) < 2);
  }
}

}  // namespace plumb::test
