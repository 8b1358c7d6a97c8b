#include "planner/score/error_statistics.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("sizes give mean, median and worst, and signs give the bias") {
  const ErrorStatistics odd = error_statistics({-10, 2, 6});
  CHECK(odd.count == 3);
  CHECK(odd.mean_pct == doctest::Approx(6));
  CHECK(odd.median_pct == doctest::Approx(6));
  CHECK(odd.worst_pct == doctest::Approx(10));
  CHECK(odd.bias_pct == doctest::Approx(-2.0 / 3));
  CHECK(error_statistics({1, -2, 3, 8}).median_pct == doctest::Approx(2.5));
  CHECK(error_statistics({}).count == 0);
}

TEST_CASE("the order of ranks counts, not their distances") {
  CHECK(rank_correlation({1, 2, 3, 4}, {10, 20, 30, 4000}) == doctest::Approx(1));
  CHECK(rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}) == doctest::Approx(-1));
  // d = {1, -1, 0}, so 1 - 6 * 2 / (3 * 8) = 0.5.
  CHECK(rank_correlation({2, 1, 3}, {1, 2, 3}) == doctest::Approx(0.5));
}

TEST_CASE("equal values share their mean rank, and a list of equals has no order") {
  // Ranks {0.5, 0.5, 2} against {0, 1, 2}: 1.5 / sqrt(1.5 * 2).
  CHECK(rank_correlation({1, 1, 2}, {1, 2, 3}) == doctest::Approx(0.866025).epsilon(1e-5));
  CHECK(rank_correlation({1, 1, 1}, {1, 2, 3}) == 0);
}

TEST_CASE("regret is what choosing by the prediction costs") {
  CHECK(top1_regret_pct({2, 1, 3}, {20, 22, 30}) == doctest::Approx(10));
  CHECK(top1_regret_pct({1, 2, 3}, {20, 22, 30}) == 0);
}

}  // namespace plumb::test
