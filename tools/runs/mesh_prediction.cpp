#include "tools/runs/mesh_prediction.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/passes/lower.h"
#include "simulator/simulate.h"
#include "tools/io/console.h"
#include "tools/runs/run_layout.h"

namespace plumb { inline namespace tools {
namespace {

std::optional<ReshardingKind> kind_of(const std::string& name) {
  for (const ReshardingKind kind : {ReshardingKind::kDirect, ReshardingKind::kAllGather, ReshardingKind::kBroadcast}) {
    if (resharding_name(kind) == name) return kind;
  }
  return {};
}

}  // namespace

MeshPrediction predict_meshes(const Plan& plan, const std::string& meshes, const std::string& reshard) {
  std::vector<RankMesh> shapes;
  MeshPrediction result;
  bool replicated = false;
  for (const StageMesh& mesh : parse_meshes(meshes)) {
    shapes.push_back({.data = mesh.data, .tensor = mesh.tensor});
    result.devices += mesh.data * mesh.tensor * plan.layout.context;
    replicated = replicated || mesh.data * plan.layout.context > 1;
  }
  if (result.devices > plan.cluster.devices)
    print_note(fmt::format("the meshes need {} devices, the plan's cluster has {}: priced on {} such devices",
                           result.devices, plan.cluster.devices, result.devices));
  Pricing pricing(plan.model, resize(plan.cluster, std::max(result.devices, plan.cluster.devices)), plan.training);
  const Schedule order = order_of(plan);
  result.stages = price_unequal_stages(pricing, plan.layout, order, shapes, kind_of(reshard));
  Evaluation& evaluation = result.evaluation;
  evaluation.layout = plan.layout;
  evaluation.priced = result.stages.priced;
  evaluation.priced.buckets.clear();  // gradients are reduced behind the last backward
  evaluation.costs = result.stages.costs;
  evaluation.layers = layers_by_part(pricing, evaluation.priced.split);
  evaluation.lowered = lower(order, {.data = {.enabled = replicated, .zero = plan.layout.zero}});
  evaluation.simulation = simulate(evaluation.lowered, evaluation.costs);
  evaluation.rates = rates_of(pricing, resize(pricing.cluster(), result.devices), evaluation.simulation.makespan);
  return result;
}

}}  // namespace plumb::tools
