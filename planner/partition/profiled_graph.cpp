#include "planner/partition/profiled_graph.h"

#include <functional>
#include <queue>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {

std::vector<int> topological_order(const ProfiledGraph& graph, const std::string& file) {
  const std::size_t nodes = num_vertices(graph);
  if (nodes == 0) throw SpecError(fmt::format("{}: there is no node: give a line for each layer", file));
  std::vector<std::size_t> missing(nodes);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t node = 0; node < nodes; ++node) {
    missing[node] = in_degree(node, graph);
    if (missing[node] == 0) ready.push(static_cast<int>(node));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const auto edge : boost::make_iterator_range(out_edges(static_cast<std::size_t>(node), graph)))
      if (--missing[target(edge, graph)] == 0) ready.push(static_cast<int>(target(edge, graph)));
  }
  if (order.size() < nodes)
    throw SpecError(fmt::format("{}: the edges form a cycle, and no layer can come first: remove one of them", file));
  return order;
}

void require_node_count(std::size_t nodes, const std::string& place) {
  if (nodes <= kMostProfiledNodes) return;
  throw SpecError(fmt::format("{}: there are more than {} nodes, the most that are cut: join nodes that stay together",
                              place, kMostProfiledNodes));
}

}}  // namespace plumb::planner
