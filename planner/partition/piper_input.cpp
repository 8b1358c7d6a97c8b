#include "planner/partition/piper_input.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {
namespace {

constexpr int kMostDevices = 1 << 18;

/// A way with the bytes that its devices exchange for each edge, by the number of the other node.
struct WayInput {
  NodeWay way;
  std::string place;
  nlohmann::json before, behind;  ///< of edges that come from such a node, and that go to one
};

int tensor_degree(const std::string& text, StrictObject& ways) {
  int degree = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), degree);
  if (error != std::errc{} || end != text.data() + text.size() || degree < 1 || degree > kMostDevices)
    ways.fail(text, "a number of devices, 1 or more, is wanted");
  return degree;
}

std::vector<WayInput> ways_of(StrictObject& node) {
  std::vector<WayInput> inputs;
  StrictObject ways = node.object("TMPCs");
  for (const auto& [degree, list] : node.raw("TMPCs").items()) {
    const int tensor = tensor_degree(degree, ways);
    for (StrictObject& way : ways.objects(degree)) {
      WayInput input;
      input.place = way.place();
      input.way.tensor = tensor;
      input.way.name = way.text("id");
      input.way.seconds = Seconds{way.non_negative_number("timePerSample")};
      input.way.weight_bytes = way.non_negative_number("parameterSize");
      input.way.in_flight_bytes = way.non_negative_number("memoryUsageA");
      input.way.state_bytes = way.non_negative_number("memoryUsageB");
      if (way.has("syncTimeFw")) input.before = way.raw("syncTimeFw");
      if (way.has("syncTimeBw")) input.behind = way.raw("syncTimeBw");
      inputs.push_back(std::move(input));
    }
  }
  std::ranges::stable_sort(inputs, {}, [](const WayInput& input) { return input.way.tensor; });
  if (inputs.empty() || inputs.front().way.tensor != 1)
    node.fail("TMPCs", "there is no way on one device: add it as \"1\"");
  return inputs;
}

/// Refuses what Piper's choice between a node's ways does not cover.
void require_pairs_of_ways(const std::vector<WayInput>& inputs, StrictObject& node) {
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const WayInput& before = inputs[i - 1];
    const WayInput& input = inputs[i];
    if (before.way.tensor != input.way.tensor) continue;
    if (i > 1 && inputs[i - 2].way.tensor == input.way.tensor)
      node.fail("TMPCs", "there are more than two ways on equally many devices: leave the fastest and the smallest");
    if (before.way.weight_bytes != input.way.weight_bytes || before.before != input.before ||
        before.behind != input.behind)
      node.fail("TMPCs",
                "two ways on equally many devices differ in parameterSize or syncTime: they may differ in time and "
                "memory only");
  }
}

/// Returns the bytes that each way exchanges for the edge to or from node `other`.
std::vector<double> exchanged(const std::vector<WayInput>& inputs, std::int64_t other, nlohmann::json WayInput::*side) {
  std::vector<double> bytes;
  for (const WayInput& input : inputs) {
    const nlohmann::json& of = input.*side;
    if (of.is_null()) {
      bytes.push_back(0);
      continue;
    }
    StrictObject edges(of, input.place);
    const std::string key = std::to_string(other);
    bytes.push_back(edges.has(key) ? edges.non_negative_number(key) : 0);
  }
  return bytes;
}

}  // namespace

PiperInput parse_piper_input(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  StrictObject document(json, file);
  PiperInput input;
  std::vector<std::vector<WayInput>> ways;
  std::unordered_map<std::int64_t, int> by_id;
  for (StrictObject& node : document.objects("nodes")) {
    require_node_count(ways.size() + 1, node.place());
    const std::int64_t id = node.non_negative_integer("id");
    if (!by_id.emplace(id, static_cast<int>(ways.size())).second) node.fail("id", "two nodes have it: change one");
    ways.push_back(ways_of(node));
    require_pairs_of_ways(ways.back(), node);
    ProfiledNode made{.name = node.text_or("name", std::to_string(id)), .ways = {}};
    for (const WayInput& way : ways.back()) made.ways.push_back(way.way);
    add_vertex(made, input.graph);
  }
  std::set<std::pair<int, int>> known;
  for (StrictObject& edge : document.objects("edges")) {
    const auto end = [&](const char* key) {
      const auto found = by_id.find(edge.non_negative_integer(key));
      if (found == by_id.end()) edge.fail(key, "there is no such node: add it, or drop the edge");
      return *found;
    };
    const auto [source_id, source] = end("sourceId");
    const auto [target_id, target] = end("destId");
    if (!known.emplace(source, target).second) edge.fail("destId", "this edge is there twice: drop one");
    const double bytes = edge.non_negative_number("communicationCost");
    ProfiledNode& maker = input.graph[static_cast<std::size_t>(source)];
    maker.output_bytes = std::max(maker.output_bytes, bytes);
    add_edge(source, target,
             {.bytes = bytes,
              .source_bytes = exchanged(ways[source], target_id, &WayInput::behind),
              .target_bytes = exchanged(ways[target], source_id, &WayInput::before)},
             input.graph);
  }
  topological_order(input.graph, file);
  input.devices = static_cast<int>(document.positive_integer("maxDevices", kMostDevices));
  input.bytes = document.positive_number("maxMemoryPerDevice");
  input.bytes_per_second = document.positive_number("bandwidth");
  input.microbatches = document.positive_integer("mbsInBatch");
  return input;
}

}}  // namespace plumb::planner
