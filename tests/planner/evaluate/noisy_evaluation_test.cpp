#include "planner/evaluate/noisy_evaluation.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("runs without noise are the evaluation's own step, and noise makes the slowest of them longer") {
  Pricing pricing(small_gpt(), round_cluster(8), kSmallTraining);
  const Layout layout{.data = 2, .tensor = 2, .pipeline = 2};
  const Evaluation evaluation = evaluate(pricing, layout, {.network = NetworkOptions{}});
  const NoisySteps steps = noisy_steps_of(evaluation, {.cv = 0.1, .runs = 100});
  CHECK(steps.quiet_makespan == evaluation.simulation.makespan);
  CHECK(percentile(steps.makespans, 95) > steps.quiet_makespan);
  const NoisySteps same = noisy_steps_of(evaluation, {.cv = 0.1, .runs = 100, .replicas = 7});
  CHECK(steps.makespans == same.makespans);  // the replicas are the layout's
}

TEST_CASE("a run that is told from its steady state has no actions to vary") {
  Evaluation told{.layout = {.pipeline = 2}};
  check_refused<SpecError>([&] { noisy_steps_of(told, {.cv = 0.1}); }, "noise", "leave the noise out");
}

}  // namespace plumb::test
