#include "planner/budget/simulated_goodput.h"

#include <cmath>

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

constexpr Interruptions kCases[] = {
    {.mean_between = Seconds{11'000}, .restart = Seconds{900}, .checkpoint = Seconds{5}},
    {.mean_between = Seconds{3600}, .restart = Seconds{60}, .checkpoint = Seconds{60}},
    {.mean_between = Seconds{100'000}, .restart = Seconds{1200}, .checkpoint = Seconds{90}},
    {.mean_between = Seconds{1000}, .restart = Seconds{0}, .checkpoint = Seconds{100}},
};

}  // namespace

TEST_CASE("the formula's goodput lies within the error of the simulation") {
  for (const Interruptions& one : kCases) {
    for (const double factor : {0.3, 1.0, 3.0}) {
      const Seconds interval = best_interval(one) * factor;
      const SimulatedGoodput simulated = simulate_goodput(one, interval, {.seed = 7, .interruptions = 20000});
      CAPTURE(one.mean_between.count());
      CAPTURE(factor);
      CHECK(simulated.standard_error < 0.01);
      // Three standard errors hold all but one of 370 samples; seed and cases are fixed.
      CHECK(std::abs(simulated.goodput - goodput(one, interval)) < 3 * simulated.standard_error);
    }
  }
}

TEST_CASE("the error falls with the root of the number of interruptions") {
  const Seconds interval = best_interval(kCases[0]);
  const double few = simulate_goodput(kCases[0], interval, {.seed = 1, .interruptions = 2000}).standard_error;
  const double many = simulate_goodput(kCases[0], interval, {.seed = 1, .interruptions = 200'000}).standard_error;
  CHECK(few / many == doctest::Approx(10).epsilon(0.1));
}

TEST_CASE("the best interval is the simulated one within two per cent") {
  for (const Interruptions& one : kCases) {
    CAPTURE(one.mean_between.count());
    const Seconds simulated = simulated_best_interval(one, {.seed = 3, .interruptions = 100'000});
    CHECK(std::abs(simulated / best_interval(one) - 1) < 0.02);
  }
}

TEST_CASE("another seed is another run, and the same seed the same") {
  const Seconds interval{600};
  const auto run = [&](std::uint64_t seed) { return simulate_goodput(kCases[0], interval, {.seed = seed}).goodput; };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
}

}  // namespace plumb::test
