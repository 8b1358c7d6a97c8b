#include "planner/partition/placement_input.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {
namespace {

struct GraphOperator {
  int vertex = 0;
  bool backward = false;
};

/// Returns true for true and 1.
bool flag(StrictObject& node, std::string_view key) {
  const nlohmann::json& value = node.raw(key);
  return value.is_boolean() ? value.get<bool>() : node.non_negative_integer(key, 1) == 1;
}

/// Adds the nodes, one vertex a colour; returns them by "id".
std::unordered_map<std::int64_t, GraphOperator> add_operators(StrictObject& document, ProfiledGraph& graph) {
  constexpr double kMillisecond = 1e-3;
  std::unordered_map<std::int64_t, GraphOperator> by_id;
  std::unordered_map<std::int64_t, int> by_colour;
  for (StrictObject& node : document.objects("nodes")) {
    require_node_count(by_id.size() + 1, node.place());
    const std::int64_t id = node.non_negative_integer("id");
    const bool backward = flag(node, "isBackwardNode");
    auto vertex = static_cast<int>(num_vertices(graph));
    if (node.has("colorClass"))
      vertex = by_colour.emplace(node.non_negative_integer("colorClass"), vertex).first->second;
    if (vertex == static_cast<int>(num_vertices(graph)))
      add_vertex({.name = node.text_or("name", std::to_string(id)), .ways = {NodeWay{.name = "plain"}}}, graph);
    if (!by_id.emplace(id, GraphOperator{.vertex = vertex, .backward = backward}).second)
      node.fail("id", "two nodes have it: change one");
    NodeWay& way = graph[static_cast<std::size_t>(vertex)].ways.front();
    way.seconds += Seconds{node.non_negative_number("fpgaLatency") * kMillisecond};
    if (node.has("size")) way.state_bytes += node.non_negative_number("size");
  }
  return by_id;
}

}  // namespace

ProfiledGraph parse_placement_input(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  StrictObject document(json, file);
  ProfiledGraph graph;
  const auto by_id = add_operators(document, graph);
  std::map<std::pair<int, int>, double> carried;
  for (StrictObject& edge : document.objects("edges")) {
    const auto end = [&](const char* key) {
      const auto found = by_id.find(edge.non_negative_integer(key));
      if (found == by_id.end()) edge.fail(key, "there is no such node: add it, or drop the edge");
      return found->second;
    };
    const GraphOperator source = end("sourceId"), target = end("destId");
    const double bytes = edge.has("size") ? edge.non_negative_number("size") : 0;
    if (source.backward || target.backward || source.vertex == target.vertex) continue;
    carried[{source.vertex, target.vertex}] += bytes;
    ProfiledNode& maker = graph[static_cast<std::size_t>(source.vertex)];
    maker.output_bytes = std::max(maker.output_bytes, bytes);
  }
  for (const auto& [ends, bytes] : carried) add_edge(ends.first, ends.second, {.bytes = bytes}, graph);
  topological_order(graph, file);
  return graph;
}

}}  // namespace plumb::planner
