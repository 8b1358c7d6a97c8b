#include "planner/score/minimise.h"

#include <cmath>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("the smallest value of a bowl is found, also at an edge of the box") {
  const auto bowl = [](const std::vector<double>& x) {
    return std::pow(x[0] - 0.3, 2) + 2 * std::pow(x[1] - 5, 2) + 1;
  };
  const std::vector<double> inside = minimise(bowl, {{0, 1}, {0, 10}}, {0.9, 1});
  CHECK(inside[0] == doctest::Approx(0.3).epsilon(0.02));
  CHECK(inside[1] == doctest::Approx(5).epsilon(0.02));
  CHECK(minimise(bowl, {{0, 1}, {0, 4}}, {0.9, 1})[1] == 4);
}

TEST_CASE("of several valleys the deepest that the grid meets is taken, and a start that is best stays") {
  const auto valleys = [](const std::vector<double>& x) {
    return std::min(std::abs(x[0] - 1) + 1, std::abs(x[0] - 7));
  };
  CHECK(minimise(valleys, {{0, 8}}, {1})[0] == doctest::Approx(7));
  CHECK(minimise([](const std::vector<double>&) { return 1.0; }, {{0, 8}}, {3}) == std::vector<double>{3});
}

}  // namespace plumb::test
