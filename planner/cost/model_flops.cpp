#include "planner/cost/model_flops.h"

#include <algorithm>

namespace plumb {

double model_flops_per_step(const ModelSpec& model, const TrainingSpec& training) {
  if (model.graph) {
    constexpr double kPasses = 3;
    const auto samples = static_cast<double>(training.global_batch);
    return kPasses * samples * forward_flops(graph_nodes(*model.graph, training.sequence));
  }
  // A tied table is not counted in active_parameter_count() as the head, but takes part as one.
  const std::int64_t tables = (model.tied_embeddings ? 0 : model.vocab * model.hidden) + model.positions * model.hidden;
  const auto parameters = static_cast<double>(active_parameter_count(model) - tables);
  const std::int64_t seen = model.window > 0 ? std::min(model.window, training.sequence) : training.sequence;
  const auto attention = static_cast<double>(model.layers * model.heads * model.head_size * seen);
  return static_cast<double>(tokens_per_step(training)) * (6 * parameters + 12 * attention);
}

double flops_utilization(double flops_per_step, const TrainingSpec& training, const ClusterSpec& cluster,
                         Seconds step_time) {
  const double peak = cluster.device.peak_flops_per_second.at(training.precision) * cluster.devices;
  return flops_per_step / (step_time.count() * peak);
}

double model_flops_utilization(const ModelSpec& model, const TrainingSpec& training, const ClusterSpec& cluster,
                               Seconds step_time) {
  return flops_utilization(model_flops_per_step(model, training), training, cluster, step_time);
}

}  // namespace plumb
