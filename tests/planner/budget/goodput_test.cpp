#include "planner/budget/goodput.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

constexpr Interruptions kHourly{.mean_between = Seconds{3600}, .restart = Seconds{60}, .checkpoint = Seconds{10}};
const Interruptions kNever{.mean_between = Seconds{std::numeric_limits<double>::infinity()},
                           .restart = Seconds{60},
                           .checkpoint = Seconds{10}};

}  // namespace

TEST_CASE("without interruptions only checkpoints take time, and the best is to write none") {
  CHECK(goodput(kNever, Seconds{90}) == 0.9);
  CHECK(std::isinf(best_interval(kNever).count()));
  CHECK(std::isinf(daly_interval(kNever).count()));
  CHECK(goodput(kNever, best_interval(kNever)) == 1);
}

TEST_CASE("rare interruptions lose half an interval and a restart each") {
  // For tau + delta, R << M: 1 / goodput = 1 + delta/tau + (tau/2 + R)/M to the first order.
  const Interruptions rare{.mean_between = Seconds{1e6}, .restart = Seconds{100}, .checkpoint = Seconds{1}};
  const double tau = 1000;
  CHECK(1 / goodput(rare, Seconds{tau}) == doctest::Approx(1 + 1 / tau + (tau / 2 + 100) / 1e6).epsilon(1e-5));
}

TEST_CASE("the best interval has the largest goodput") {
  for (const double checkpoint : {1.0, 10.0, 300.0, 3000.0}) {
    const Interruptions one{.mean_between = Seconds{3600}, .restart = Seconds{60}, .checkpoint = Seconds{checkpoint}};
    const Seconds best = best_interval(one);
    for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0})
      CHECK(goodput(one, best * factor) < goodput(one, best));
  }
}

TEST_CASE("Young's and Daly's intervals are the best one for short checkpoints, Daly's also for longer ones") {
  CHECK(young_interval(kHourly).count() == doctest::Approx(std::sqrt(2 * 10 * 3600)));
  CHECK(daly_interval(kHourly) / best_interval(kHourly) == doctest::Approx(1).epsilon(1e-4));
  const Interruptions longer{.mean_between = Seconds{3600}, .restart = Seconds{0}, .checkpoint = Seconds{600}};
  CHECK(daly_interval(longer) / best_interval(longer) == doctest::Approx(1).epsilon(0.01));
  CHECK(young_interval(longer) / best_interval(longer) > 1.1);
  const Interruptions hopeless{.mean_between = Seconds{10}, .restart = Seconds{0}, .checkpoint = Seconds{30}};
  CHECK(daly_interval(hopeless) == hopeless.mean_between);
}

}  // namespace plumb::test
