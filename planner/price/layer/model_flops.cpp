#include "planner/price/layer/model_flops.h"

#include <algorithm>

namespace plumb { inline namespace planner {

namespace {

/// Returns the FLOPs of a token in the forward of all layers' attention, the causal half not deducted, or of their
/// recurrence.
double core_forward_flops(const ModelSpec& model, const TrainingSpec& training) {
  if (model.mamba2) return 4 * static_cast<double>(model.layers * model.mamba2->inner() * model.mamba2->state_size);
  const std::int64_t seen = model.window > 0 ? std::min(model.window, training.sequence) : training.sequence;
  return 4 * static_cast<double>(model.layers * model.heads * model.head_size * seen);
}

}  // namespace

double model_flops_per_step(const ModelSpec& model, const TrainingSpec& training) {
  if (model.graph) {
    constexpr double kPasses = 3;
    const auto samples = static_cast<double>(training.global_batch);
    return kPasses * samples * forward_flops(graph_nodes(*model.graph, training.sequence));
  }
  // A tied table is not counted in active_parameter_count() as the head, but takes part as one.
  const std::int64_t tables = (model.tied_embeddings ? 0 : model.vocab * model.hidden) + model.positions * model.hidden;
  const auto parameters = static_cast<double>(active_parameter_count(model) - tables);
  return static_cast<double>(tokens_per_step(training)) * (6 * parameters + 3 * core_forward_flops(model, training));
}

double counted_flops_per_step(const ModelSpec& model, const TrainingSpec& training, Recompute recompute,
                              FlopsCount count) {
  const double flops = model_flops_per_step(model, training);
  if (model.graph || count == FlopsCount::kModel) return flops;
  const auto tokens = static_cast<double>(tokens_per_step(training));
  const double attention = tokens * core_forward_flops(model, training);
  if (count == FlopsCount::kCausal) return model.mamba2 ? flops : flops - 3 * attention / 2;
  switch (recompute) {
    case Recompute::kNone:
      return flops;
    case Recompute::kSelective:
      return flops + attention;
    case Recompute::kFull:
    case Recompute::kStage:
      break;
  }
  const double head = tokens * 6 * static_cast<double>(model.vocab * model.hidden);
  return flops + (flops - head) / 3;
}

double flops_utilization(double flops_per_step, const TrainingSpec& training, const ClusterSpec& cluster,
                         Seconds step_time) {
  const double peak = cluster.device.peak_flops_per_second.at(training.precision) * cluster.devices;
  return flops_per_step / (step_time.count() * peak);
}

}}  // namespace plumb::planner
