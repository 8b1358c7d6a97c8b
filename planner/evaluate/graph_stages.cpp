#include "planner/evaluate/graph_stages.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/evaluate/pipeline_hops.h"
#include "planner/partition/chain_partition.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

std::vector<int> ranks_by_part(const Schedule& schedule) {
  std::vector<int> ranks;
  for (const StagePlace& stage : schedule.stages) {
    if (stage.model_part >= std::ssize(ranks)) ranks.resize(static_cast<std::size_t>(stage.model_part) + 1, -1);
    if (ranks[stage.model_part] < 0) ranks[stage.model_part] = stage.rank;
  }
  return ranks;
}

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
std::vector<double> activation_bytes(const Pricing& pricing, const Layout& layout) {
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

Chain chain_of(Pricing& pricing, const Layout& layout) {
  const GraphTables& graph = *pricing.graph();
  const std::vector<LayerPrice>& prices = pricing.layer_prices(layout, pricing.placements(layout).inner.front());
  const std::vector<Pricing::LayerState>& states = pricing.layer_states(layout);
  const double per_parameter = state_bytes_per_parameter(pricing.training(), layout);
  const auto element_bytes = static_cast<double>(bytes_per_element(pricing.training().precision));
  Chain chain{.activation_bytes = activation_bytes(pricing, layout)};
  for (const int kind : graph.kind_of_node) {
    const LayerPrice& price = prices[kind];
    const Seconds rebuilt = layout.recompute == Recompute::kFull ? total(price.rebuild_full) : Seconds{0};
    chain.seconds.push_back(total(price.forward) + rebuilt + total(price.input_grad) + total(price.weight_grad));
    chain.state_bytes.push_back(per_parameter * static_cast<double>(states[kind].parameters));
  }
  for (const GraphCut& cut : graph.cuts)
    chain.cut_bytes.push_back(static_cast<double>(cut.elements * layout.microbatch) * element_bytes);
  return chain;
}

ChainLimits limits_of(Pricing& pricing, const Layout& layout, const std::vector<int>& ranks) {
  const DeviceSpec& device = pricing.cluster().device;
  const std::int64_t microbatches = microbatches_of(pricing.training(), layout);
  const auto parts = static_cast<int>(ranks.size());
  ChainLimits limits{.parts = parts,
                     .bytes = static_cast<double>(device.memory_bytes - device.reserved_bytes) / layout.chunks};
  for (int part = 0; part < parts; ++part) {
    const std::int64_t most = layout.schedule == "gpipe" ? microbatches : parts - part;
    limits.in_flight.push_back(static_cast<int>(std::min(microbatches, most)));
  }
  for (std::size_t part = 0; part + 1 < ranks.size(); ++part) {
    const LinkCost link = ranks[part] == ranks[part + 1]
                              ? LinkCost{}
                              : pipeline_link(pricing.collectives(), grid_of(layout), ranks[part], ranks[part + 1],
                                              pricing.cluster().devices_per_node);
    limits.bytes_per_second.push_back(link.bytes_per_second);
  }
  return limits;
}

std::string note_on(const std::vector<int>& split, const Chain& chain) {
  Seconds slowest{0}, all{0};
  std::size_t node = 0;
  for (const int count : split) {
    Seconds time{0};
    for (int i = 0; i < count; ++i) time += chain.seconds[node++];
    slowest = std::max(slowest, time);
    all += time;
  }
  return fmt::format("the {} nodes are split {}: the slowest stage takes {:.1f} % longer than the mean",
                     chain.seconds.size(), fmt::join(split, ","),
                     100 * (slowest / all * static_cast<double>(split.size()) - 1));
}

void require_whole(const std::vector<int>& split, std::size_t parts, std::size_t nodes) {
  const bool each = std::ranges::all_of(split, [](int count) { return count >= 1; });
  const auto placed = static_cast<std::size_t>(std::accumulate(split.begin(), split.end(), 0));
  if (each && split.size() == parts && placed == nodes) return;
  throw SpecError(fmt::format(
      "split {} does not share {} nodes among {} stages: give {} numbers above 0 that sum up to {} (`plumb partition` "
      "makes one)",
      fmt::join(split, ","), nodes, parts, parts, nodes));
}

}  // namespace

Partition graph_partition(Pricing& pricing, const Layout& layout, const Schedule& schedule) {
  const std::vector<int> ranks = ranks_by_part(schedule);
  const std::size_t nodes = pricing.graph()->nodes.size();
  if (!layout.split.empty()) {
    require_whole(layout.split, ranks.size(), nodes);
    return {.split = layout.split};
  }
  if (nodes < ranks.size()) {
    throw SpecError(
        fmt::format("{} stages cannot share {} nodes: use fewer pipeline ranks or chunks", ranks.size(), nodes));
  }
  if (ranks.size() == 1) return {.split = {static_cast<int>(nodes)}};
  const Chain chain = chain_of(pricing, layout);
  ChainLimits limits = limits_of(pricing, layout, ranks);
  std::optional<std::vector<int>> split = chain_partition(chain, limits);
  if (!split) {
    limits.bytes = std::numeric_limits<double>::infinity();
    split = chain_partition(chain, limits);
  }
  return {.split = *split, .notes = {note_on(*split, chain)}};
}

std::vector<int> first_nodes(const std::vector<int>& split) {
  std::vector<int> first = {0};
  for (const int count : split) first.push_back(first.back() + count);
  return first;
}

std::vector<std::vector<Layer>> runnable_layers_by_part(const GraphTables& graph, const std::vector<int>& split) {
  std::vector<std::vector<Layer>> parts(split.size());
  if (!graph.runs) return parts;
  const std::vector<int> first = first_nodes(split);
  for (std::size_t part = 0; part < split.size(); ++part) {
    for (int node = first[part]; node < first[part + 1]; ++node)
      if (graph.nodes[node].layer) parts[part].push_back(*graph.nodes[node].layer);
  }
  return parts;
}

std::vector<LayerFootprint> graph_footprints_of_part(const Pricing& pricing, const Layout& layout,
                                                     const std::vector<int>& split, int part) {
  const std::vector<int> first = first_nodes(split);
  return graph_footprints(pricing.graph()->nodes, first[part], first[part + 1], pricing.training(), layout.microbatch,
                          layout.recompute);
}

std::pair<std::int64_t, std::int64_t> graph_message_bytes(const GraphTables& graph, const std::vector<int>& split,
                                                          int part, std::int64_t bytes) {
  const std::vector<int> first = first_nodes(split);
  return {graph.cuts[first[part + 1]].elements * bytes, graph.cuts[first[part]].gradient_elements * bytes};
}

std::vector<Segment> graph_tied_reduction(const Pricing& pricing, const ProcessGrid& grid, const Schedule& schedule,
                                          const std::vector<int>& split, int part) {
  const std::vector<GraphNode>& nodes = pricing.graph()->nodes;
  const std::vector<int> first = first_nodes(split), ranks = ranks_by_part(schedule);
  std::map<int, std::set<int>> users;  // by the node that owns the table
  std::set<int> used_here;
  const auto uses = [&](int owner, int node) {
    const auto holder = std::ranges::upper_bound(first, node) - first.begin() - 1;
    users[owner].insert(ranks[holder]);
    if (holder == part) used_here.insert(owner);
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].tied_to < 0) continue;
    uses(nodes[i].tied_to, static_cast<int>(i));
    uses(nodes[i].tied_to, nodes[i].tied_to);
  }
  std::vector<Segment> segments;
  for (const int owner : used_here) {
    const std::set<int>& group = users[owner];
    if (group.size() < 2) continue;
    const LinkCost link =
        pipeline_link(pricing.collectives(), grid, *group.begin(), *group.rbegin(), pricing.cluster().devices_per_node);
    const auto members = static_cast<int>(group.size());
    const std::int64_t bytes =
        element_count(nodes[owner].parameters.front()) * bytes_per_element(pricing.training().gradient_precision);
    const Seconds time = collective_time({.node = link}, {.ranks = members, .nodes = 1, .ranks_per_node = members},
                                         CollectiveKind::kAllReduce, bytes);
    segments.push_back({.kind = Segment::Kind::kCollective,
                        .seconds = time,
                        .group = Group::kPipeline,
                        .collective = CollectiveKind::kAllReduce,
                        .bytes = bytes});
  }
  return segments;
}

}}  // namespace plumb::planner
