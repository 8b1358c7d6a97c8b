#include "tools/runs/mesh_prediction.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "planner/price/layer/model_flops.h"
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

/// Returns the prediction on the devices that the meshes need.
Prediction prediction_of(const Pricing& pricing, const Simulation& simulation, int devices) {
  const Seconds step_time = to_seconds(simulation.makespan);
  const TrainingSpec& training = pricing.training();
  return {
      .step_time = step_time,
      .bubble_ratio = simulation.bubble_ratio,
      .span_bubble_ratio = simulation.span_bubble_ratio,
      .samples_per_second = static_cast<double>(training.global_batch) / step_time.count(),
      .tokens_per_second = static_cast<double>(tokens_per_step(training)) / step_time.count(),
      .mfu_ratio = flops_utilization(pricing.flops_per_step(), training, resize(pricing.cluster(), devices), step_time),
      .peak_memory_bytes = simulation.peak_memory_bytes,
      .peak_activations = simulation.peak_activations};
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
  Predicted& predicted = result.predicted;
  predicted.priced = result.stages.priced;
  predicted.priced.buckets.clear();  // gradients are reduced behind the last backward
  predicted.lowered = lower(order, {.data = {.enabled = replicated, .zero = plan.layout.zero}});
  predicted.simulation = simulate(predicted.lowered, predicted.priced.costs);
  predicted.prediction = prediction_of(pricing, predicted.simulation, result.devices);
  return result;
}

}}  // namespace plumb::tools
