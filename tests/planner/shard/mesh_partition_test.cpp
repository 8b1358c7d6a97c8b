#include "planner/shard/mesh_partition.h"

#include <algorithm>
#include <limits>

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/spec/rank_layout.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

/// Alpa's objective of a layout with meshes, from the layout's own prices.
double objective_of(Pricing& pricing, const Layout& layout) {
  const std::int64_t microbatches = microbatches_of(pricing.training(), layout);
  const CostTable costs = cost_table(price_layout(pricing, layout, order_of(layout, layout.pipeline)));
  double sum = 0, slowest = 0;
  for (std::int32_t stage = 0; stage < layout.pipeline; ++stage) {
    const auto seconds = [&](Op op) { return to_seconds(duration_of(costs, {.op = op, .stage = stage})).count(); };
    const double own = seconds(Op::kForward) + seconds(Op::kBackward) +
                       (seconds(Op::kReduceGrad) + seconds(Op::kUnshard) + seconds(Op::kOptimizerStep)) /
                           static_cast<double>(microbatches);
    sum += own;
    slowest = std::max(slowest, own);
  }
  return sum + static_cast<double>(microbatches - 1) * slowest;
}

/// The least objective of all stages on all meshes, of groups of so many layers each.
double least_objective(Pricing& pricing, const Layout& asked, int group, Layout so_far, int layers, int devices) {
  if (layers == 0 || devices == 0)
    return layers == 0 && devices == 0 ? objective_of(pricing, so_far) : std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();
  for (int inside = group; inside <= layers; inside += group) {
    for (const RankMesh& mesh : possible_meshes(pricing, asked)) {
      if (mesh.data * mesh.tensor > devices) continue;
      Layout more = so_far;
      more.split.push_back(inside);
      more.meshes.push_back(mesh);
      more.pipeline = static_cast<int>(more.meshes.size());
      least = std::min(least, least_objective(pricing, asked, group, std::move(more), layers - inside,
                                              devices - mesh.data * mesh.tensor));
    }
  }
  return least;
}

}  // namespace

TEST_CASE("the stages on meshes are the best of all that there are") {
  for (const std::int64_t microbatch : {1, 2, 4}) {
    for (const int zero : {0, 1}) {
      // Four devices are a node, so that a stage costs the same wherever its devices lie.
      Pricing pricing(small_gpt(), round_cluster(4), kSmallTraining);
      const Layout asked{.zero = zero, .microbatch = microbatch};
      const auto found = mesh_partition(pricing, asked, 4);
      REQUIRE(found);
      CHECK(found->groups == 4);
      const double least = least_objective(pricing, asked, 2, asked, 8, 4);
      CHECK(found->objective.count() == doctest::Approx(least).epsilon(1e-9));
    }
  }
}

TEST_CASE("the simulated step of an answer is Alpa's objective, but for the messages") {
  Pricing pricing(small_gpt(), round_cluster(4), kSmallTraining);
  const auto found = mesh_partition(pricing, {.microbatch = 1}, 8);
  REQUIRE(found);
  Evaluation evaluation = evaluate(pricing, found->layout);
  const double step = step_time(evaluation.simulation).count(), told = found->objective.count();
  // The objective has each message's time left out, and the end of the step spread over its micro-batches.
  CHECK(step > 0.9 * told);
  CHECK(step < 1.2 * told);
}

TEST_CASE("the nodes of a graph are divided by the batch") {
  const TrainingSpec training{.global_batch = 64, .sequence = 1};
  Pricing pricing(preset_model("alexnet"), round_cluster(4), training);
  const auto found = mesh_partition(pricing, {.microbatch = 8}, 6);
  REQUIRE(found);
  for (const RankMesh& mesh : possible_meshes(pricing, {.microbatch = 8})) CHECK(mesh.tensor == 1);
  const Evaluation evaluation = evaluate(pricing, found->layout);
  CHECK(evaluation.simulation.makespan > SimTime{0});
}

TEST_CASE("meshes are powers of two or whole nodes, and replicas divide the micro-batch") {
  Pricing pricing(small_gpt(), round_cluster(12), kSmallTraining);
  const std::vector<RankMesh> meshes = possible_meshes(pricing, {.microbatch = 2});
  const std::vector<RankMesh> wanted{
      {}, {.data = 2}, {.tensor = 2}, {.data = 2, .tensor = 2}, {.tensor = 4}, {.data = 2, .tensor = 4}};
  CHECK(meshes == wanted);
}

TEST_CASE("degrees of one's own are refused, and what fits nowhere has no answer") {
  Pricing pricing(small_gpt(), round_cluster(4), kSmallTraining);
  check_refused<SpecError>([&] { mesh_partition(pricing, {.data = 2}, 4); }, "chooses the degrees", "leave dp");
  Pricing large(preset_model("gpt3-175b"), round_cluster(4), kSmallTraining);
  CHECK_FALSE(mesh_partition(large, {}, 12));
}

}  // namespace plumb::test
