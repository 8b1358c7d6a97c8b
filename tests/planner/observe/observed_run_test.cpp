#include "planner/observe/observed_run.h"

#include <doctest/doctest.h>

#include "planner/search/evaluate_plan.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

Plan pipeline_plan() {
  return {.model = small_gpt(),
          .cluster = round_cluster(4),
          .training = kSmallTraining,
          .layout = {.data = 2, .pipeline = 2, .split = {5, 3}}};
}

MedianEstimate seconds_of(double value) {
  return {.value = value, .observations = 1};
}

}  // namespace

TEST_CASE("a step, its memory and its operations stand beside the prediction, the furthest off first") {
  const Plan plan = pipeline_plan();
  const Evaluation evaluation = evaluate(plan);
  const double step = step_time(evaluation.simulation).count();
  const ObservedRun run{
      .step = seconds_of(2 * step),
      .peak_bytes = 1 << 20,
      .operations = {{.name = "none", .ops = {Op::kEvict}, .least = seconds_of(1), .most = seconds_of(1)},
                     {.name = "forward", .ops = {Op::kForward}, .least = seconds_of(1e-9), .most = seconds_of(2e-9)},
                     {.name = "backward", .ops = {Op::kBackward}, .least = seconds_of(100), .most = seconds_of(200)}}};
  const ComparedRun compared = compare_run(Pricing(plan.model, plan.cluster, plan.training), evaluation, run);
  CHECK(error_ratio(compared.step) == doctest::Approx(-0.5));
  REQUIRE(compared.memory);
  CHECK(compared.memory->predicted > 1 << 20);
  REQUIRE(compared.parts.size() == 2);  // the schedule has no evictions
  CHECK(compared.parts[0].name == "backward");
  // Stage 0 has five layers and stage 1 three with the head: their forwards are not equal.
  const ComparedPart& forward = compared.parts[1];
  CHECK(forward.least.predicted < forward.most.predicted);
  CHECK(forward.most.predicted < step);
}

TEST_CASE("components of a profile stand beside those of the prediction, and memory only where it was measured") {
  const Plan plan = pipeline_plan();
  const Pricing pricing(plan.model, plan.cluster, plan.training);
  const Evaluation evaluation = evaluate(plan);
  const TimeComponents components = time_components(pricing, evaluation, step_time(evaluation.simulation));
  const ComparedRun compared =
      compare_run(pricing, evaluation,
                  {.step = seconds_of(1),
                   .components = {{.name = "waits and products",
                                   .components = {TimeComponent::kBubble, TimeComponent::kGemm},
                                   .seconds = 1}}});
  CHECK_FALSE(compared.memory);
  REQUIRE(compared.parts.size() == 1);
  CHECK(compared.parts[0].most.predicted ==
        doctest::Approx((components[static_cast<std::size_t>(TimeComponent::kBubble)] +
                         components[static_cast<std::size_t>(TimeComponent::kGemm)])
                            .count()));
  CHECK(compared.parts[0].least.measured == 1);
}

}  // namespace plumb::test
