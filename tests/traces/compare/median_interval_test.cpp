#include "traces/compare/median_interval.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

/// Returns 1, 2, ... n ps, the largest first.
std::vector<SimTime> count_down(int n) {
  std::vector<SimTime> times;
  for (int i = n; i > 0; --i) times.push_back(SimTime{i});
  return times;
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("few measurements are enclosed by their whole range, with the probability that this has") {
    CHECK(median_interval({SimTime{7}}).confidence_ratio == 0);
    const MedianInterval five = median_interval(count_down(5));
    CHECK(five.low == SimTime{1});
    CHECK(five.high == SimTime{5});
    CHECK(five.confidence_ratio == doctest::Approx(1 - 2.0 / 32));
  }

  TEST_CASE("more measurements leave their extremes out as the binomial distribution says") {
    // Tables of the sign test: n = 10 leaves out one at each end (97.9 %), n = 20 five (95.9 %), n = 50 seventeen.
    CHECK(median_interval(count_down(8)).low == SimTime{1});
    CHECK(median_interval(count_down(10)).low == SimTime{2});
    CHECK(median_interval(count_down(10)).confidence_ratio == doctest::Approx(0.9785).epsilon(1e-4));
    CHECK(median_interval(count_down(20)).low == SimTime{6});
    CHECK(median_interval(count_down(20)).high == SimTime{15});
    CHECK(median_interval(count_down(20)).confidence_ratio == doctest::Approx(0.9586).epsilon(1e-4));
    CHECK(median_interval(count_down(50)).low == SimTime{18});
    CHECK(median_interval(count_down(3000)).confidence_ratio >= 0.95);
  }
}

}  // namespace plumb::test
