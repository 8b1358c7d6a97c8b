#include "schedules/dependencies/action_graph.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/graph/depth_first_search.hpp>

namespace plumb { inline namespace schedules {
namespace {

using Vertex = boost::graph_traits<ActionGraph>::vertex_descriptor;
using Edge = boost::graph_traits<ActionGraph>::edge_descriptor;

/// Remembers how each vertex was reached and closes the cycle at the first back edge.
class CycleVisitor : public boost::default_dfs_visitor {
 public:
  struct Found {
    std::vector<std::int32_t> cycle;
  };
  CycleVisitor(std::vector<Vertex>& parent, Found& found) : parent_(parent), found_(found) {}

  void tree_edge(Edge edge, const ActionGraph& graph) { parent_[target(edge, graph)] = source(edge, graph); }

  void back_edge(Edge edge, const ActionGraph& graph) {
    if (!found_.cycle.empty()) return;
    const Vertex top = target(edge, graph);
    for (Vertex v = source(edge, graph); v != top; v = parent_[v]) found_.cycle.push_back(static_cast<std::int32_t>(v));
    found_.cycle.push_back(static_cast<std::int32_t>(top));
    std::ranges::reverse(found_.cycle);
  }

 private:
  std::vector<Vertex>& parent_;
  Found& found_;
};

constexpr std::size_t kShownEnds = 6;

}  // namespace

ActionGraph action_graph(const Schedule& schedule, Sends sends) {
  const std::vector<Dependency> edges = dependencies(schedule, sends);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
  ends.reserve(edges.size());
  for (const Dependency& edge : edges) ends.emplace_back(edge.from, edge.to);
  return {boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), edges.begin(),
          static_cast<std::uint32_t>(action_count(schedule))};
}

std::vector<std::int32_t> find_cycle(const ActionGraph& graph) {
  std::vector<Vertex> parent(num_vertices(graph), 0);
  std::vector<boost::default_color_type> colors(num_vertices(graph), boost::white_color);
  CycleVisitor::Found found;
  CycleVisitor visitor(parent, found);
  const auto color_map = boost::make_iterator_property_map(colors.begin(), get(boost::vertex_index, graph));
  const auto stop_once_found = [&found](Vertex, const ActionGraph&) { return !found.cycle.empty(); };
  for (Vertex v = 0; v < num_vertices(graph) && found.cycle.empty(); ++v) {
    if (colors[v] == boost::white_color) boost::depth_first_visit(graph, v, visitor, color_map, stop_once_found);
  }
  return found.cycle;
}

std::string describe_cycle(const Schedule& schedule, const std::vector<std::int32_t>& cycle) {
  if (cycle.empty()) return {};
  const ActionIds ids = action_ids(schedule);
  const auto name = [&](std::int32_t id) {
    const auto [rank, position] = place_of(ids, id);
    return fmt::format("rank {}: {} (position {})", rank, to_text(schedule.ranks[rank][position]), position);
  };
  std::string text = name(cycle.front());
  for (std::size_t i = 1; i < cycle.size(); ++i) {
    const std::size_t from_end = cycle.size() - i;  // an action waits for the one before it in the cycle
    if (cycle.size() > 2 * kShownEnds && i == kShownEnds) {
      text += fmt::format(", which waits for ... ({} actions) ...", cycle.size() - 2 * kShownEnds);
    }
    if (i >= kShownEnds && from_end >= kShownEnds && cycle.size() > 2 * kShownEnds) continue;
    text += fmt::format("{} waits for {}", i == 1 ? "" : ", which", name(cycle[from_end]));
  }
  return text + fmt::format("{} waits for {}", cycle.size() == 1 ? "" : ", which", name(cycle.front()));
}

}}  // namespace plumb::schedules
