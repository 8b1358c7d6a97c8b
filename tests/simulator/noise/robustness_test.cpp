#include "simulator/noise/robustness.h"

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb::test {

TEST_CASE("one rank alone is as slow as its computing, and noise of mean 1 costs it nothing") {
  const Schedule schedule = lower(make_schedule("gpipe", {.ranks = 1, .microbatches = 64}));
  const Robustness alone =
      robustness(schedule, chunk_cost_table(1, {}), {.cv = 0.05, .runs = 100, .slow_factor = 1.25});
  CHECK(alone.slow_ratio == doctest::Approx(1.25).epsilon(1e-9));
  CHECK(alone.noise_ratio == doctest::Approx(1).epsilon(0.005));  // 12,800 draws of a deviation of 5 %
}

TEST_CASE("ranks that wait for each other lose by noise, and most by the rank with most work") {
  const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 16}));
  const CostTable costs =
      chunk_cost_table(4, {.forward = {Seconds{1}, Seconds{1}, Seconds{2}, Seconds{1}}, .input_grad = {Seconds{1}}});
  const Robustness four = robustness(schedule, costs);
  CHECK(four.slow_rank == 2);
  CHECK(four.slow_ratio > 1);
  CHECK(four.slow_ratio < 1.1);  // not all of a step is that rank's
  CHECK(four.noise_ratio > 1);
  const Robustness none = robustness(schedule, costs, {.cv = 0, .runs = 2, .slow_factor = 1});
  CHECK(none.noise_ratio == 1);
  CHECK(none.slow_ratio == 1);
}

}  // namespace plumb::test
