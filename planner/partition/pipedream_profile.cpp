#include "planner/partition/pipedream_profile.h"

#include <charconv>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/forms/trimmed.h"

namespace plumb { inline namespace planner {
namespace {

struct ProfileLine {
  std::string_view text;
  std::string place;  ///< "FILE:LINE"
};

struct ProfileLines {
  std::vector<ProfileLine> nodes, edges;
};

/// Returns the lines that are not empty. An edge begins with blanks.
ProfileLines lines_of(std::string_view text, const std::string& file) {
  ProfileLines lines;
  int number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (trimmed(line).empty()) continue;
    std::string place = fmt::format("{}:{}", file, number);
    if (line.find(" -- ") == std::string_view::npos)
      throw SpecError(
          fmt::format("{}: neither a node (\"node1 -- LAYER -- forward_compute_time=...\") nor an edge", place));
    const bool edge = line.starts_with('\t') || line.starts_with(' ');
    if (!edge) require_node_count(lines.nodes.size() + 1, place);
    (edge ? lines.edges : lines.nodes).push_back({.text = line, .place = std::move(place)});
  }
  return lines;
}

/// Returns the number behind "KEY=", or the sum of a list "[a; b]".
double number_of(const ProfileLine& line, std::string_view key) {
  const auto start = line.text.rfind(std::string(key) + "=");
  if (start == std::string_view::npos) throw SpecError(fmt::format("{}: there is no {}: add it", line.place, key));
  std::string_view rest = trimmed(line.text.substr(start + key.size() + 1));
  const bool list = rest.starts_with('[');
  if (list) rest.remove_prefix(1);
  double sum = 0;
  for (;;) {
    rest = trimmed(rest);
    double value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc{} || !(value >= 0) || value > 1e18)
      throw SpecError(fmt::format("{}: {} is no number of 0 or more", line.place, key));
    sum += value;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    rest = trimmed(rest);
    if (!list || !(rest.starts_with(';') || rest.starts_with(','))) return sum;
    rest.remove_prefix(1);
  }
}

ProfiledNode node_of(const ProfileLine& line, std::string_view name, std::string_view layer) {
  constexpr double kMillisecond = 1e-3;
  constexpr double kStatePerWeight = 4;  // weight, gradient and Adam's two moments, all in fp32
  const double milliseconds = number_of(line, "forward_compute_time") + number_of(line, "backward_compute_time");
  const double output = number_of(line, "activation_size"), weights = number_of(line, "parameter_size");
  return {.name = fmt::format("{} {}", name, layer),
          .output_bytes = output,
          .ways = {{.name = "plain",
                    .seconds = Seconds{milliseconds * kMillisecond},
                    .weight_bytes = weights,
                    .in_flight_bytes = output,
                    .state_bytes = kStatePerWeight * weights}}};
}

struct NamedNode {
  const ProfileLine* line = nullptr;
  std::string_view name, layer;
  bool read = false;  ///< an edge leaves it
};

struct NamedNodes {
  std::vector<NamedNode> nodes;
  std::vector<std::pair<int, int>> edges;
};

NamedNodes named_nodes(const ProfileLines& lines) {
  NamedNodes named;
  std::unordered_map<std::string_view, int> known;
  for (const ProfileLine& line : lines.nodes) {
    const auto dash = line.text.find(" -- ");
    const std::string_view name = trimmed(line.text.substr(0, dash)), rest = line.text.substr(dash + 4);
    if (!known.emplace(name, static_cast<int>(named.nodes.size())).second)
      throw SpecError(fmt::format("{}: {} is there twice: rename one", line.place, name));
    named.nodes.push_back({.line = &line, .name = name, .layer = trimmed(rest.substr(0, rest.find(" -- ")))});
  }
  for (const ProfileLine& line : lines.edges) {
    const auto dash = line.text.find(" -- ");
    const auto number = [&](std::string_view name) {
      const auto found = known.find(trimmed(name));
      if (found != known.end()) return found->second;
      throw SpecError(
          fmt::format("{}: there is no node {}: add its line, or drop the edge", line.place, trimmed(name)));
    };
    named.edges.emplace_back(number(line.text.substr(0, dash)), number(line.text.substr(dash + 4)));
    named.nodes[named.edges.back().first].read = true;
  }
  return named;
}

}  // namespace

ProfiledGraph parse_pipedream_profile(std::string_view text, const std::string& file) {
  const ProfileLines lines = lines_of(text, file);
  const NamedNodes named = named_nodes(lines);
  ProfiledGraph graph;
  std::vector<int> vertices;  // [node] -1: left out
  for (const NamedNode& node : named.nodes) {
    const bool dropped = node.layer.starts_with("Input") || (!node.read && node.layer.starts_with("__getitem__"));
    vertices.push_back(dropped ? -1 : static_cast<int>(num_vertices(graph)));
    if (!dropped) add_vertex(node_of(*node.line, node.name, node.layer), graph);
  }
  for (const auto& [from, to] : named.edges)
    if (const int source = vertices[from], target = vertices[to]; source >= 0 && target >= 0)
      add_edge(source, target, {.bytes = graph[source].output_bytes}, graph);
  topological_order(graph, file);
  return graph;
}

}}  // namespace plumb::planner
