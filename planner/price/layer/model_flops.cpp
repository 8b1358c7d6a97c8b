#include "planner/price/layer/model_flops.h"

#include <algorithm>

#include "planner/spec/cluster_sites.h"

namespace plumb { inline namespace planner {

namespace {

std::int64_t layers_with(const ModelSpec& model, bool LayerParts::*part) {
  return std::ranges::count(layer_parts(model), true, part);
}

/// Returns the modules of multi-token prediction whose block has the part, as the model's last layer does or does not.
std::int64_t in_mtp_modules(const ModelSpec& model, bool LayerParts::*part) {
  return model.mtp_modules > 0 && layer_parts(model).back().*part ? model.mtp_modules : 0;
}

/// Returns the FLOPs of a token in the forward of all layers' attention, the causal half not deducted.
double attention_forward_flops(const ModelSpec& model, const TrainingSpec& training) {
  const std::int64_t seen = model.window > 0 ? std::min(model.window, training.sequence) : training.sequence;
  const std::int64_t layers =
      layers_with(model, &LayerParts::attention) + in_mtp_modules(model, &LayerParts::attention);
  return 4 * static_cast<double>(layers * model.heads * model.head_size * seen);
}

/// Returns the FLOPs of a token in a mixer's recurrence: what it adds to each number of its states, and what it reads of
/// it; the delta rule also reads what it takes out.
double state_flops(const StateMixer& mixer) {
  if (const auto* mamba2 = std::get_if<Mamba2Mixer>(&mixer))
    return 4 * static_cast<double>(mamba2->inner() * mamba2->state_size);
  if (const auto* mamba = std::get_if<MambaMixer>(&mixer))
    return 4 * static_cast<double>(mamba->channels * mamba->state_size);
  if (const auto* delta_net = std::get_if<DeltaNetMixer>(&mixer))
    return 6 * static_cast<double>(delta_net->inner() * delta_net->key_size);
  return 0;
}

double states_forward_flops(const ModelSpec& model) {
  const std::int64_t layers = layers_with(model, &LayerParts::states) + in_mtp_modules(model, &LayerParts::states);
  return static_cast<double>(layers) * state_flops(model.states);
}

}  // namespace

double model_flops_per_step(const ModelSpec& model, const TrainingSpec& training) {
  if (model.graph) {
    constexpr double kPasses = 3;
    const auto samples = static_cast<double>(training.global_batch);
    return kPasses * samples * forward_flops(graph_nodes(*model.graph, training.sequence));
  }
  // A tied table is not counted in active_parameter_count() as the head, but takes part as one.
  // A module of multi-token prediction computes logits of its own.
  const std::int64_t again = model.mtp_modules * model.vocab * model.hidden;
  const std::int64_t tables = (model.tied_embeddings ? 0 : model.vocab * model.hidden) + model.positions * model.hidden;
  const auto parameters = static_cast<double>(active_parameter_count(model) - tables + again);
  const double cores = attention_forward_flops(model, training) + states_forward_flops(model);
  return static_cast<double>(tokens_per_step(training)) * (6 * parameters + 3 * cores);
}

double counted_flops_per_step(const ModelSpec& model, const TrainingSpec& training, Recompute recompute,
                              FlopsCount count) {
  const double flops = model_flops_per_step(model, training);
  if (model.graph || count == FlopsCount::kModel) return flops;
  const auto tokens = static_cast<double>(tokens_per_step(training));
  const double attention = tokens * attention_forward_flops(model, training);
  if (count == FlopsCount::kCausal) return flops - 3 * attention / 2;
  switch (recompute) {
    case Recompute::kNone:
      return flops;
    case Recompute::kSelective:
      return flops + attention + tokens * states_forward_flops(model);
    case Recompute::kFull:
    case Recompute::kStage:
      break;
  }
  const double head = tokens * 6 * static_cast<double>((1 + model.mtp_modules) * model.vocab * model.hidden);
  return flops + (flops - head) / 3;
}

double flops_utilization(double flops_per_step, const TrainingSpec& training, const ClusterSpec& cluster,
                         Seconds step_time) {
  const double peak = peak_flops_per_second(cluster, training.precision);
  return flops_per_step / (step_time.count() * peak);
}

}}  // namespace plumb::planner
