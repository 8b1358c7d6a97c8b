#include "planner/cost/model_flops.h"

#include <algorithm>

namespace plumb {

double model_flops_per_step(const ModelSpec& model, const TrainingSpec& training) {
  // A tied table is not counted in active_parameter_count() as the head, but takes part as one.
  const std::int64_t tables = (model.tied_embeddings ? 0 : model.vocab * model.hidden) + model.positions * model.hidden;
  const auto parameters = static_cast<double>(active_parameter_count(model) - tables);
  const std::int64_t seen = model.window > 0 ? std::min(model.window, training.sequence) : training.sequence;
  const auto attention = static_cast<double>(model.layers * model.heads * model.head_size * seen);
  return static_cast<double>(tokens_per_step(training)) * (6 * parameters + 12 * attention);
}

double model_flops_utilization(const ModelSpec& model, const TrainingSpec& training, const ClusterSpec& cluster,
                               Seconds step_time) {
  const double peak = cluster.device.peak_flops_per_second.at(training.precision) * cluster.devices;
  return model_flops_per_step(model, training) / (step_time.count() * peak);
}

}  // namespace plumb
