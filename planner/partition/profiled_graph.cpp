#include "planner/partition/profiled_graph.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/strict_json.h"
#include "schedules/forms/trimmed.h"

namespace plumb { inline namespace planner {
namespace {

struct Edge {
  int from = 0;
  int to = 0;
  std::string place;
};

/// Returns the nodes, each behind its inputs.
std::vector<ProfiledNode> in_order(const std::vector<ProfiledNode>& nodes, const std::vector<Edge>& edges,
                                   const std::string& file) {
  if (nodes.empty()) throw SpecError(fmt::format("{}: there is no node: give a line for each layer", file));
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
  // The edges are reversed and the last nodes come first, so that a depth-first search finishes the first nodes first.
  Graph graph(nodes.size());
  for (const Edge& edge : edges) boost::add_edge(edge.to, edge.from, graph);
  std::vector<int> order;
  try {
    boost::topological_sort(graph, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    throw SpecError(fmt::format("{}: the edges form a cycle, and no layer can come first: remove one of them", file));
  }
  std::vector<int> place(nodes.size(), 0);
  std::vector<ProfiledNode> sorted;
  for (const int node : order) {
    place[node] = static_cast<int>(sorted.size());
    sorted.push_back(nodes[node]);
  }
  for (const Edge& edge : edges) sorted[place[edge.to]].inputs.push_back(place[edge.from]);
  for (ProfiledNode& node : sorted) std::ranges::sort(node.inputs);
  return sorted;
}

/// Returns the number behind "KEY=", or the sum of a list "[a; b]".
double number_of(std::string_view line, std::string_view key, const std::string& place) {
  const auto start = line.rfind(std::string(key) + "=");
  if (start == std::string_view::npos) throw SpecError(fmt::format("{}: there is no {}: add it", place, key));
  std::string_view rest = trimmed(line.substr(start + key.size() + 1));
  const bool list = rest.starts_with('[');
  if (list) rest.remove_prefix(1);
  double sum = 0;
  for (;;) {
    rest = trimmed(rest);
    double value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc{} || !(value >= 0) || value > 1e18)
      throw SpecError(fmt::format("{}: {} is no number of 0 or more", place, key));
    sum += value;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    rest = trimmed(rest);
    if (!list || !(rest.starts_with(';') || rest.starts_with(','))) return sum;
    rest.remove_prefix(1);
  }
}

}  // namespace

std::vector<ProfiledNode> parse_pipedream_profile(std::string_view text, const std::string& file) {
  constexpr double kMillisecond = 1e-3;
  std::vector<ProfiledNode> nodes;
  std::map<std::string, int, std::less<>> known;  // -1: an input
  std::vector<Edge> edges;
  std::vector<std::pair<std::string_view, std::string>> edge_lines;
  int number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string place = fmt::format("{}:{}", file, ++number);
    if (trimmed(line).empty()) continue;
    const auto dash = line.find(" -- ");
    if (dash == std::string_view::npos)
      throw SpecError(
          fmt::format("{}: neither a node (\"node1 -- LAYER -- forward_compute_time=...\") nor an edge", place));
    if (line.starts_with('\t') || line.starts_with(' ')) {
      edge_lines.emplace_back(line, place);
      continue;
    }
    const std::string name(trimmed(line.substr(0, dash)));
    std::string_view what = line.substr(dash + 4);
    what = trimmed(what.substr(0, what.find(" -- ")));
    const bool input = what.starts_with("Input");
    if (!known.emplace(name, input ? -1 : static_cast<int>(nodes.size())).second)
      throw SpecError(fmt::format("{}: {} is there twice: rename one", place, name));
    if (input) continue;
    const double activation = number_of(line, "activation_size", place);
    nodes.push_back({.name = fmt::format("{} {}", name, what),
                     .forward = Seconds{number_of(line, "forward_compute_time", place) * kMillisecond},
                     .backward = Seconds{number_of(line, "backward_compute_time", place) * kMillisecond},
                     .activation_bytes = activation,
                     .kept_bytes = activation,
                     .parameter_bytes = number_of(line, "parameter_size", place)});
  }
  for (const auto& [line, place] : edge_lines) {
    const auto dash = line.find(" -- ");
    int ends[2] = {-1, -1};
    bool of_input = false;
    for (int side = 0; side < 2; ++side) {
      const std::string_view name = trimmed(side == 0 ? line.substr(0, dash) : line.substr(dash + 4));
      const auto found = known.find(name);
      if (found == known.end())
        throw SpecError(fmt::format("{}: there is no node {}: add its line, or drop the edge", place, name));
      ends[side] = found->second;
      of_input = of_input || found->second < 0;
    }
    if (!of_input) edges.push_back({.from = ends[0], .to = ends[1], .place = place});
  }
  return in_order(nodes, edges, file);
}

std::vector<ProfiledNode> parse_piper_input(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  StrictObject document(json, file);
  std::vector<ProfiledNode> nodes;
  std::map<std::int64_t, int> by_id;
  for (StrictObject& node : document.objects("nodes")) {
    const std::int64_t id = node.non_negative_integer("id");
    if (!by_id.emplace(id, static_cast<int>(nodes.size())).second) node.fail("id", "two nodes have it: change one");
    StrictObject ways = node.object("TMPCs");
    std::optional<ProfiledNode> plain;
    for (StrictObject& way : ways.objects("1")) {
      if (way.text("id") != "vanilla") continue;
      // Piper gives forward and backward as one number: a third of it is taken for the forward.
      const double seconds = way.non_negative_number("timePerSample");
      plain = {.name = node.text_or("name", std::to_string(id)),
               .forward = Seconds{seconds / 3},
               .backward = Seconds{seconds * 2 / 3},
               .kept_bytes = way.non_negative_number("memoryUsageA"),
               .parameter_bytes = way.non_negative_number("parameterSize")};
    }
    if (!plain) node.fail("TMPCs", "there is no \"vanilla\" way on one device: add it");
    nodes.push_back(*plain);
  }
  std::vector<Edge> edges;
  for (StrictObject& edge : document.objects("edges")) {
    Edge ends{.place = edge.place()};
    for (const auto& [key, end] : {std::pair{"sourceId", &ends.from}, std::pair{"destId", &ends.to}}) {
      const auto found = by_id.find(edge.non_negative_integer(key));
      if (found == by_id.end()) edge.fail(key, "there is no such node: add it, or drop the edge");
      *end = found->second;
    }
    ProfiledNode& source = nodes[ends.from];
    source.activation_bytes = std::max(source.activation_bytes, edge.non_negative_number("communicationCost"));
    edges.push_back(ends);
  }
  return in_order(nodes, edges, file);
}

Chain chain_of(const std::vector<ProfiledNode>& nodes, double optimizer_bytes) {
  Chain chain{.cut_bytes = std::vector<double>(nodes.size() + 1, 0)};
  std::vector<int> last_reader(nodes.size(), -1);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    chain.seconds.push_back(nodes[i].forward + nodes[i].backward);
    chain.state_bytes.push_back(nodes[i].parameter_bytes * (2 + optimizer_bytes));
    chain.activation_bytes.push_back(nodes[i].kept_bytes);
    for (const int input : nodes[i].inputs) last_reader[input] = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (int place = static_cast<int>(i) + 1; place <= last_reader[i]; ++place)
      chain.cut_bytes[place] += nodes[i].activation_bytes;
  return chain;
}

}}  // namespace plumb::planner
