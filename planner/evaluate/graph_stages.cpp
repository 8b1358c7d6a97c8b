#include "planner/evaluate/graph_stages.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/evaluate/stage_chain.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

std::string note_on(const std::vector<int>& split, const StageChain& stages) {
  const Chain& chain = stages.chain;
  Seconds slowest{0}, all{0};
  std::size_t node = 0;
  for (std::size_t part = 0; part < split.size(); ++part) {
    Seconds time{0};
    for (int i = 0; i < split[part]; ++i) time += chain.seconds[node++];
    time *= stages.limits.slowness_of(part);
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
  const std::vector<int> ranks = ranks_by_part(schedule.stages);
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
  const StageChain stages = stage_chain(pricing, layout, schedule.stages);
  std::vector<int> split = fastest_split(stages);
  std::string note = note_on(split, stages);
  return {.split = std::move(split), .notes = {std::move(note)}};
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

std::vector<Segment> graph_tied_reduction(const Pricing& pricing, const Layout& layout, const Schedule& schedule,
                                          const std::vector<int>& split, int part) {
  const std::vector<GraphNode>& nodes = pricing.graph()->nodes;
  const std::vector<int> first = first_nodes(split), ranks = ranks_by_part(schedule.stages);
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
    const LinkCost link = pricing.hop(layout, *group.begin(), *group.rbegin());
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
