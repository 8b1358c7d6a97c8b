#include "planner/search/predict.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/evaluate/host_offload.h"
#include "planner/evaluate/topology_links.h"
#include "planner/price/layer/model_flops.h"
#include "schedules/forms/strict_json.h"
#include "schedules/generators/catalogue.h"
#include "schedules/limits.h"
#include "schedules/passes/lower.h"
#include "simulator/steady_state.h"

namespace plumb { inline namespace planner {

namespace {

ScheduleParameters parameters_of(const Layout& layout, int microbatches) {
  return {.ranks = layout.pipeline, .microbatches = microbatches, .chunks = layout.chunks, .group = layout.group};
}

Prediction prediction_of(const Pricing& pricing, const Simulation& simulation) {
  const Seconds step_time = to_seconds(simulation.makespan);
  return {.step_time = step_time,
          .bubble_ratio = simulation.bubble_ratio,
          .span_bubble_ratio = simulation.span_bubble_ratio,
          .samples_per_second = static_cast<double>(pricing.training().global_batch) / step_time.count(),
          .tokens_per_second = has_sequence(pricing.model())
                                   ? static_cast<double>(tokens_per_step(pricing.training())) / step_time.count()
                                   : 0,
          .mfu_ratio = flops_utilization(pricing.flops_per_step(), pricing.training(), pricing.cluster(), step_time),
          .peak_memory_bytes = simulation.peak_memory_bytes,
          .peak_activations = simulation.peak_activations};
}

/// Micro-batches of an order that shows what one of so many does: a few periods of one that repeats.
int enough_periods(int microbatches, int period) {
  constexpr int kPeriods = 8;
  return period == 0 || microbatches / period <= kPeriods ? microbatches : kPeriods * period + microbatches % period;
}

/// Replicas that are not alike can be too many to simulate one by one: why links are then private; empty where they
/// need not be. What was asked for by name (slow ranks, degraded links, every replica) is never left out.
std::string why_private(const Predicted& predicted, const NetworkSpec& network, const NetworkOptions& options) {
  if (options.replicas == Replicas::kUnfolded || !options.slow.empty() || !options.degraded.empty()) return {};
  if (action_count(predicted.lowered) * network.replicas <= kMostSimulatedActions) return {};
  if (simulated_actions(predicted.lowered, predicted.priced.costs, network) <= kMostSimulatedActions) return {};
  return fmt::format(
      "the {} replicas are not alike and too many to simulate one by one: every transfer has its links "
      "to itself",
      network.replicas);
}

}  // namespace

Schedule order_of(const TrainingSpec& training, const Layout& layout) {
  return make_schedule(layout.schedule, parameters_of(layout, static_cast<int>(microbatches_of(training, layout))));
}

Schedule short_order_of(const TrainingSpec& training, const Layout& layout) {
  const auto microbatches = static_cast<int>(microbatches_of(training, layout));
  const int period = period_of(layout.schedule, parameters_of(layout, microbatches));
  return make_schedule(layout.schedule, parameters_of(layout, enough_periods(microbatches, period)));
}

Schedule lowered_for(const Layout& layout, const Schedule& order, const std::vector<int>& buckets, Receives receives) {
  return lower(order, {.offload = layout.offload.activations ? std::optional(kKeptActivations) : std::nullopt,
                       .data = {.enabled = layout.data * layout.context > 1, .zero = layout.zero, .buckets = buckets},
                       .receives = receives});
}

Predicted predict(Pricing& pricing, const Layout& layout, const Schedule& order, const SimulationOptions& options,
                  const std::optional<NetworkOptions>& network, Receives receives) {
  Predicted result{.priced = price_layout(pricing, layout, order)};
  result.lowered = lowered_for(layout, order, result.priced.buckets, receives);
  CostTable& costs = result.priced.costs;
  NetworkSpec shared;
  if (network && network->topology) {
    costs = with_topology_links(std::move(costs), *network->topology, replica_grid_of(layout), result.lowered);
  }
  if (network) {
    shared =
        cluster_network(pricing.cluster(), replica_grid_of(layout),
                        {.ranks = grid_of(layout), .experts = expert_grid_of(layout)}, result.lowered, costs, *network);
    if (const std::string why = why_private(result, shared, *network); !why.empty()) {
      result.priced.notes.push_back(why);
      shared = {};
    }
  }
  result.simulation = simulate(result.lowered, costs, shared, options, network ? network->replicas : Replicas::kFolded);
  result.prediction = prediction_of(pricing, result.simulation);
  if (result.simulation.engine == "events") result.network = std::move(shared);
  return result;
}

Predicted predict(Pricing& pricing, const Layout& layout, const SimulationOptions& options) {
  if (options.record_timeline) {
    SimulationOptions trusted = options;
    trusted.validate = false;  // an order of the catalogue is valid, and lowering keeps it so
    return predict(pricing, layout, order_of(pricing.training(), layout), trusted);
  }
  const auto microbatches = static_cast<int>(microbatches_of(pricing.training(), layout));
  const int period = period_of(layout.schedule, parameters_of(layout, microbatches));
  Predicted result{.priced = price_layout(pricing, layout, short_order_of(pricing.training(), layout))};
  result.simulation = simulate_repeating({.lowered =
                                              [&](int m) {
                                                const Schedule order =
                                                    make_schedule(layout.schedule, parameters_of(layout, m));
                                                return lowered_for(layout, order, result.priced.buckets);
                                              },
                                          .microbatches = microbatches,
                                          .period = period},
                                         result.priced.costs, options.sends);
  result.prediction = prediction_of(pricing, result.simulation);
  return result;
}

nlohmann::ordered_json to_json(const Prediction& prediction) {
  return {{"step_time_s", prediction.step_time.count()},
          {"makespan_s", prediction.step_time.count()},
          {"bubble_ratio", prediction.bubble_ratio},
          {"span_bubble_ratio", prediction.span_bubble_ratio},
          {"samples_per_s", prediction.samples_per_second},
          {"tokens_per_s", prediction.tokens_per_second > 0 ? nlohmann::ordered_json(prediction.tokens_per_second)
                                                            : nlohmann::ordered_json(nullptr)},
          {"mfu", prediction.mfu_ratio},
          {"peak_memory_bytes", prediction.peak_memory_bytes},
          {"peak_activations", prediction.peak_activations},
          {"critical_path", nullptr},
          {"ranks", nullptr}};
}

Prediction prediction_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  Prediction prediction{.step_time = Seconds{object.positive_number("step_time_s")}};
  object.positive_number("makespan_s");
  prediction.bubble_ratio = object.non_negative_number("bubble_ratio");
  prediction.span_bubble_ratio = object.non_negative_number("span_bubble_ratio");
  if (object.has("samples_per_s")) prediction.samples_per_second = object.positive_number("samples_per_s");
  if (object.has("tokens_per_s")) prediction.tokens_per_second = object.positive_number("tokens_per_s");
  prediction.mfu_ratio = object.positive_number("mfu");
  prediction.peak_memory_bytes = object.integers("peak_memory_bytes");
  for (const std::int64_t chunks : object.integers("peak_activations")) {
    prediction.peak_activations.push_back(static_cast<int>(chunks));
  }
  for (const std::string_view key : {"critical_path", "ranks"}) {
    if (object.has(key)) object.fail(key, "a plan keeps no timeline: set it to null, and see `plumb simulate` for it");
  }
  object.finish();
  return prediction;
}

}}  // namespace plumb::planner
