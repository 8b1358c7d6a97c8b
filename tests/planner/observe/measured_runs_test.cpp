#include "planner/observe/measured_runs.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

Plan plan_of_a_log() {
  return {.model = small_gpt(), .cluster = round_cluster(4), .training = kSmallTraining, .layout = {.data = 4}};
}

ProfilerTrace profile(double gemm, double idle) {
  ProfilerTrace trace{.step_seconds = {1, 1.2}, .idle_seconds = idle};
  trace.seconds[static_cast<std::size_t>(ProfiledKind::kGemm)] = gemm;
  trace.seconds[static_cast<std::size_t>(ProfiledKind::kPipeline)] = 0.1;
  trace.op_seconds[Op::kForward] = gemm;
  return trace;
}

}  // namespace

TEST_CASE("a log's throughput becomes a step by the plan's tokens, and known timers become operations") {
  const TrainingLog log{.framework = "torchtitan",
                        .file = "run.log",
                        .unit = LogUnit::kTokensPerSecondOfDevice,
                        .values = {1024, 1024},
                        .reserved_bytes = 5};
  const ObservedRun run = run_of_log(
      log, {{"forward-compute", {.least = {100}, .most = {200}}}, {"batch-generator", {.least = {1}, .most = {1}}}},
      plan_of_a_log());
  CHECK(run.step.value == doctest::Approx(16 * 512 / 4.0 / 1024));
  CHECK(run.peak_bytes == 5);
  REQUIRE(run.operations.size() == 1);
  CHECK(run.operations[0].most.value == doctest::Approx(0.2));
}

TEST_CASE("a log of steps of another size is refused") {
  TrainingLog log{.framework = "Megatron-LM", .file = "run.log", .values = {1}, .global_batch = 16};
  CHECK(run_of_log(log, {}, plan_of_a_log()).step.value == 1);
  log.global_batch = 32;
  CHECK_THROWS_AS(run_of_log(log, {}, plan_of_a_log()), SpecError);
}

TEST_CASE("profiles of ranks become means of components, and the least and most of operations") {
  const ObservedRun run = run_of_profiles({profile(0.4, 0.3), profile(0.6, 0.1)});
  CHECK(run.step.value == doctest::Approx(1.1));
  CHECK(run.step.observations == 4);
  REQUIRE(run.components.size() == 2);
  CHECK(run.components[0].name == "compute GEMM");
  CHECK(run.components[0].seconds == doctest::Approx(0.5));
  CHECK(run.components[1].seconds == doctest::Approx(0.3));  // idle and messages
  REQUIRE(run.operations.size() == 1);
  CHECK(run.operations[0].least.value == doctest::Approx(0.4));
  CHECK(run.operations[0].most.value == doctest::Approx(0.6));
}

TEST_CASE("timelines of ranks become the least and most of what their scopes span") {
  const ObservedRun run = run_of_scopes({{.step_seconds = {2}, .scope_seconds = {{"forward-step", 0.4}}},
                                         {.step_seconds = {2.2}, .scope_seconds = {{"forward-step", 0.6}}}});
  CHECK(run.step.value == doctest::Approx(2.1));
  REQUIRE(run.operations.size() == 1);
  CHECK(run.operations[0].ops == std::vector{Op::kForward});
  CHECK(run.operations[0].least.value == doctest::Approx(0.4));
  CHECK(run.operations[0].most.value == doctest::Approx(0.6));
  CHECK(run.components.empty());
}

}  // namespace plumb::test
