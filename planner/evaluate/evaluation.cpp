#include "planner/evaluate/evaluation.h"

#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/own_links_steps.h"
#include "planner/evaluate/topology_links.h"
#include "planner/price/layer/model_flops.h"
#include "planner/spec/cluster_sites.h"
#include "schedules/error.h"
#include "schedules/limits.h"
#include "simulator/steady_state.h"

namespace plumb { inline namespace planner {
namespace {

/// The layout with its prices, before a schedule is simulated.
Evaluation priced_evaluation(const Pricing& pricing, const Layout& layout, PricedLayout priced) {
  Evaluation result{.layout = layout, .priced = std::move(priced)};
  result.costs = cost_table(result.priced);
  result.layers = layers_by_part(pricing, result.priced.split);
  return result;
}

/// Returns why links are private although shared ones were asked for: replicas that are not alike can be too many to
/// simulate one by one. Empty where they need not be. What was asked for by name (slow ranks, degraded links, every
/// replica) is never left out.
std::string why_private(const Schedule& lowered, const SharedNetwork& shared, int replicas,
                        const NetworkOptions& options) {
  if (options.replicas == Replicas::kUnfolded || !options.slow.empty() || !options.degraded.empty()) return {};
  if (simulated_actions(shared, lowered) <= kMostSimulatedActions) return {};
  return fmt::format(
      "the {} replicas are not alike and too many to simulate one by one: every transfer has its links "
      "to itself",
      replicas);
}

/// True if the network is the cluster's own with nothing wrong with it.
bool is_plain(const NetworkOptions& network) {
  return network.replicas == Replicas::kFolded && network.slow.empty() && network.degraded.empty() && !network.topology;
}

bool is_long_run(const TrainingSpec& training, const Layout& layout) {
  constexpr std::int64_t kLongRun = 500'000;  // micro-batches of a rank, over all ranks
  return microbatches_of(training, layout) * layout.pipeline >= kLongRun;
}

}  // namespace

StepRates rates_of(const Pricing& pricing, const ClusterSpec& cluster, SimTime makespan) {
  const Seconds step_time = to_seconds(makespan);
  const TrainingSpec& training = pricing.training();
  return {.samples_per_second = static_cast<double>(training.global_batch) / step_time.count(),
          .tokens_per_second =
              has_sequence(pricing.model()) ? static_cast<double>(tokens_per_step(training)) / step_time.count() : 0,
          .mfu_ratio = flops_utilization(pricing.flops_per_step(), training, cluster, step_time)};
}

Prediction prediction_of(const Evaluation& evaluation) {
  return {.step = evaluation.simulation, .rates = evaluation.rates};
}

std::vector<std::string> notes_of(const Evaluation& evaluation) {
  std::vector<std::string> notes = evaluation.priced.notes;
  if (!evaluation.why_private.empty()) notes.push_back(evaluation.why_private);
  return notes;
}

Evaluation evaluate(Pricing& pricing, const Layout& layout, PricedLayout priced, const Schedule& order,
                    const EvaluationOptions& options) {
  Evaluation result = priced_evaluation(pricing, layout, std::move(priced));
  result.lowered = lowered_for(layout, order, buckets_by_stage(result.priced), options.receives);
  std::optional<NetworkOptions> network = options.network;
  if (network && site_count(pricing.cluster()) > 1) {
    if (!is_plain(*network))
      throw SpecError("faults and topologies are those of one network: name a cluster of one site");
    network.reset();
    result.why_private = "links of several sites are not shared: every transfer has its links to itself";
  }
  if (network && !layout.meshes.empty()) {
    if (!is_plain(*network))
      throw SpecError("faults and topologies are those of ranks that are alike: give a layout without meshes");
    network.reset();
    result.why_private = "links of meshes of different shape are not shared: every transfer has its links to itself";
  }
  NetworkSpec whole;
  std::optional<SharedNetwork> shared;
  if (network && network->topology) {
    result.costs =
        with_topology_links(std::move(result.costs), *network->topology, replica_grid_of(layout), result.lowered);
  }
  if (network) {
    whole = cluster_network(pricing.cluster(), replica_grid_of(layout),
                            {.ranks = grid_of(layout), .experts = expert_grid_of(layout)}, result.lowered, result.costs,
                            *network);
    shared = shared_network(whole, result.lowered, result.costs, network->replicas);
    result.why_private = why_private(result.lowered, *shared, whole.replicas, *network);
    if (!result.why_private.empty()) shared.reset();
  }
  result.simulation = shared ? simulate(result.lowered, result.costs, *shared, options.simulation)
                             : simulate(result.lowered, result.costs, options.simulation);
  result.rates = rates_of(pricing, pricing.cluster(), result.simulation.makespan);
  if (result.simulation.engine == "events") result.network = std::move(whole);
  return result;
}

Evaluation evaluate(Pricing& pricing, const Layout& layout, PricedLayout priced, const EvaluationOptions& options) {
  const bool only_sums = layout.meshes.empty() && !options.simulation.record_timeline &&
                         is_long_run(pricing.training(), layout) && (!options.network || is_plain(*options.network));
  if (only_sums) return evaluate_sums(pricing, layout, std::move(priced), options.simulation.sends);
  EvaluationOptions trusted = options;
  trusted.simulation.validate = false;  // an order of the catalogue is valid, and lowering keeps it so
  return evaluate(pricing, layout, std::move(priced), order_of(pricing.training(), layout), trusted);
}

Evaluation evaluate(Pricing& pricing, const Layout& layout, const EvaluationOptions& options) {
  return evaluate(pricing, layout, price_layout(pricing, layout, short_order_of(pricing.training(), layout)), options);
}

Evaluation evaluate_sums(Pricing& pricing, const Layout& layout, PricedLayout priced, Sends sends) {
  Evaluation result = priced_evaluation(pricing, layout, std::move(priced));
  const RepeatingSchedule repeating = repeating_order(pricing.training(), layout, buckets_by_stage(result.priced));
  result.simulation = simulate_repeating(repeating, result.costs, sends);
  result.rates = rates_of(pricing, pricing.cluster(), result.simulation.makespan);
  return result;
}

Evaluation evaluate_sums(Pricing& pricing, const Layout& layout) {
  return evaluate_sums(pricing, layout, price_layout(pricing, layout, short_order_of(pricing.training(), layout)));
}

}}  // namespace plumb::planner
