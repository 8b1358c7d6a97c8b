#include "planner/observe/explaining_figures.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "planner/search/cluster_figures.h"
#include "planner/search/evaluate_plan.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

Plan plan_on(ClusterSpec cluster) {
  return {.model = small_gpt(),
          .cluster = std::move(cluster),
          .training = kSmallTraining,
          .layout = {.data = 2, .tensor = 2, .pipeline = 2, .split = {5, 3}}};
}

/// The run of the plan on a cluster whose figure is other than the plan assumes.
ObservedRun run_on(const ClusterSpec& cluster) {
  const Plan plan = plan_on(cluster);
  const Pricing pricing(plan.model, plan.cluster, plan.training);
  const Evaluation truth = evaluate(plan);
  const MedianEstimate one{.value = 1, .observations = 1};
  ObservedRun run{.step = {.value = step_time(truth.simulation).count(), .standard_error = 1e-6, .observations = 10},
                  .operations = {{.name = "forward", .ops = {Op::kForward}, .least = one, .most = one},
                                 {.name = "backward", .ops = {Op::kBackward}, .least = one, .most = one},
                                 {.name = "reduce", .ops = {Op::kReduceGrad}, .least = one, .most = one}}};
  const ComparedRun measured = compare_run(pricing, truth, run);
  for (ObservedOperations& of : run.operations) {
    const auto part = std::ranges::find(measured.parts, of.name, &ComparedPart::name);
    if (part != measured.parts.end()) of.least.value = part->least.predicted, of.most.value = part->most.predicted;
  }
  return run;
}

}  // namespace

TEST_CASE("the figure that is other than assumed is found with its factor, and explains best") {
  const ClusterSpec assumed = round_cluster(8);
  int found = 0;
  for (const ClusterFigure& figure : cluster_figures()) {
    if (!(figure.value(assumed) > 0) || figure.of_host) continue;
    const ObservedRun run = run_on(with_figure(assumed, figure, 0.7));
    const Plan plan = plan_on(assumed);
    const std::vector<ExplainingFigure> answer = explaining_figures(plan, evaluate(plan), run);
    if (answer.empty()) continue;  // the step does not depend on it
    ++found;
    CAPTURE(figure.name);
    const auto mine = std::ranges::find(answer, figure.name, &ExplainingFigure::figure);
    REQUIRE(mine != answer.end());
    CHECK(mine->factor == doctest::Approx(0.7).epsilon(0.02));
    CHECK(mine->standard_error.value_or(0) > 0);
    CHECK(*mine->left_over <= *answer.front().left_over + 1e-3);
  }
  CHECK(found >= 3);
}

TEST_CASE("a step as predicted needs no explanation, and one that nothing reaches has none") {
  const Plan plan = plan_on(round_cluster(8));
  const Evaluation evaluation = evaluate(plan);
  const double step = step_time(evaluation.simulation).count();
  CHECK(explaining_figures(plan, evaluation, {.step = {.value = step}}).empty());
  CHECK(explaining_figures(plan, evaluation, {.step = {.value = 1000 * step}}).empty());
}

}  // namespace plumb::test
