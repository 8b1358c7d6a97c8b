#include "planner/evaluate/stage_chain.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "planner/evaluate/layout_memory.h"
#include "planner/evaluate/stage_passes.h"
#include "planner/partition/balanced_partition.h"
#include "planner/price/memory/graph_memory.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/rank_layout.h"

namespace plumb { inline namespace planner {
namespace {

double replica_share(double bytes, bool divided, int replicas) {
  return divided ? bytes / replicas : bytes;
}

double state_bytes_per_parameter(const TrainingSpec& training, const Layout& layout) {
  const auto optimizer = layout.offload.optimizer ? 0 : optimizer_bytes_per_parameter(training);
  return replica_share(static_cast<double>(bytes_per_element(training.precision)), layout.zero >= 3,
                       state_shards(layout)) +
         replica_share(static_cast<double>(bytes_per_element(training.gradient_precision)), layout.zero >= 2,
                       state_shards(layout)) +
         replica_share(static_cast<double>(optimizer), layout.zero >= 1, state_shards(layout));
}

/// [node] what it keeps of a micro-batch; that of a block that is rebuilt stands at its first node.
std::vector<double> graph_activation_bytes(const Pricing& pricing, const Layout& layout) {
  const std::vector<GraphNode>& nodes = pricing.graph()->nodes;
  const std::vector<LayerFootprint> footprints = graph_footprints(
      nodes, 0, static_cast<int>(nodes.size()), pricing.training(), layout.microbatch, layout.recompute);
  std::vector<double> bytes(nodes.size(), 0);
  std::size_t node = 0;
  for (const LayerFootprint& footprint : footprints) {
    bytes[node] = static_cast<double>(footprint.kept_bytes);
    const int segment = nodes[node++].segment;
    while (footprint.rebuilt_whole && node < nodes.size() && nodes[node].segment == segment) ++node;
  }
  return bytes;
}

/// Adds the values of the embedding and the head to those of the first and the last transformer layer.
template <typename Value>
std::vector<Value> with_ends(const std::vector<Value>& layers) {
  std::vector<Value> nodes(layers.begin() + 1, layers.end() - 1);
  nodes.front() += layers.front();
  nodes.back() += layers.back();
  return nodes;
}

/// [node] its time for a micro-batch on a pipeline rank, whose site's prices these are.
std::vector<Seconds> node_seconds(Pricing& site, const Layout& whole, int rank) {
  const Layout layout = layout_of_rank(whole, rank);
  const std::vector<LayerPrice>& prices =
      site.layer_prices(layout, site.placements(layout).inner[static_cast<std::size_t>(rank)]);
  const GraphTables* graph = site.graph();
  // The other layers decide where each stage rebuilds as many.
  const Recompute weighed = layout.recompute_layers > 0 ? Recompute::kNone : layout.recompute;
  std::vector<Seconds> seconds;
  for (const int kind : graph != nullptr ? graph->kind_of_node : site.kind_of_layer())
    seconds.push_back(steady_seconds(prices[static_cast<std::size_t>(kind)], weighed));
  return graph != nullptr ? seconds : with_ends(seconds);
}

void add_graph_bytes(Chain& chain, Pricing& pricing, const Layout& layout) {
  const GraphTables& graph = *pricing.graph();
  const std::vector<Pricing::LayerState>& states = pricing.layer_states(layout);
  const double per_parameter = state_bytes_per_parameter(pricing.training(), layout);
  const auto element_bytes = static_cast<double>(bytes_per_element(pricing.training().precision));
  chain.activation_bytes = graph_activation_bytes(pricing, layout);
  for (const int kind : graph.kind_of_node)
    chain.state_bytes.push_back(per_parameter * static_cast<double>(states[static_cast<std::size_t>(kind)].parameters));
  for (const GraphCut& cut : graph.cuts)
    chain.cut_bytes.push_back(static_cast<double>(cut.elements * layout.microbatch) * element_bytes);
}

/// Messages between transformer layers are all of one size, which decides nothing.
void add_layer_bytes(Chain& chain, Pricing& pricing, const Layout& layout) {
  for (const int kind : pricing.kind_of_layer()) {
    const StageMemory memory = memory_on_device(pricing, layout, std::span(&kind, 1), layout, {});
    chain.state_bytes.push_back(
        static_cast<double>(memory.parameter_bytes + memory.gradient_bytes + memory.optimizer_bytes));
    chain.activation_bytes.push_back(static_cast<double>(memory.forward_bytes));
  }
  chain.state_bytes = with_ends(chain.state_bytes);
  chain.activation_bytes = with_ends(chain.activation_bytes);
}

/// `first` is node_seconds() on the first part's rank.
ChainLimits limits_of(Pricing& pricing, const Layout& layout, const std::vector<int>& ranks,
                      const std::vector<Seconds>& first) {
  const std::int64_t microbatches = microbatches_of(pricing.training(), layout);
  const auto parts = static_cast<int>(ranks.size());
  const auto sum = [](const std::vector<Seconds>& seconds) {
    return std::accumulate(seconds.begin(), seconds.end(), Seconds{0});
  };
  ChainLimits limits{.parts = parts};
  for (int part = 0; part < parts; ++part) {
    const int rank = ranks[static_cast<std::size_t>(part)];
    const std::int64_t most = layout.schedule == "gpipe" ? microbatches : parts - part;
    limits.in_flight.push_back(static_cast<int>(std::min(microbatches, most)));
    const DeviceSpec& device = device_of_rank(pricing.cluster(), layout, rank);
    limits.bytes.push_back(static_cast<double>(device.memory_bytes - device.reserved_bytes) /
                           (1 + pricing.memory_headroom(layout)) / layout.chunks);
    if (site_count(pricing.cluster()) == 1 && layout.meshes.empty()) continue;
    Pricing& site = pricing.on_site(site_of_rank(pricing.cluster(), layout, rank));
    limits.slowness.push_back(sum(node_seconds(site, layout, rank)) / sum(first));
  }
  for (std::size_t part = 0; part + 1 < ranks.size(); ++part) {
    const LinkCost link =
        ranks[part] == ranks[part + 1] ? LinkCost{} : pricing.hop(layout, ranks[part], ranks[part + 1]);
    limits.bytes_per_second.push_back(link.bytes_per_second);
  }
  if (!layout.meshes.empty()) limits.bytes.clear();  // what a node holds differs from rank to rank
  return limits;
}

}  // namespace

StageChain stage_chain(Pricing& pricing, const Layout& layout, const std::vector<StagePlace>& stages) {
  const std::vector<int> ranks = ranks_by_part(stages);
  Pricing& first = pricing.on_site(site_of_rank(pricing.cluster(), layout, ranks.front()));
  StageChain result{.chain = {.seconds = node_seconds(first, layout, ranks.front())}};
  if (pricing.graph() != nullptr)
    add_graph_bytes(result.chain, pricing, layout);
  else
    add_layer_bytes(result.chain, first, layout);
  result.limits = limits_of(pricing, layout, ranks, result.chain.seconds);
  return result;
}

std::vector<int> fastest_split(StageChain stages) {
  if (auto split = chain_partition(stages.chain, stages.limits)) return *split;
  stages.limits.bytes.clear();
  return *chain_partition(stages.chain, stages.limits);
}

}}  // namespace plumb::planner
