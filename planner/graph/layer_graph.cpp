#include "planner/graph/layer_graph.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/graph/operators.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/limits.h"
#include "schedules/nearest_name.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

constexpr std::int64_t kLargestTensor = std::int64_t{1} << 40;

using Sizes = std::map<std::string, json>;
using Names = std::map<std::string, int>;

/// The names and words to which a node's text may refer.
struct Scope {
  Names nodes;         ///< index by the name that is used in this scope
  Sizes words;         ///< value of each word behind a $
  std::string prefix;  ///< beginning of the names of the scope's nodes
  int segment = -1;
};

class Expansion {
 public:
  Expansion(const json& document, std::string place, const std::map<std::string, std::int64_t>& sizes)
      : document_(document), place_(std::move(place)) {
    for (const auto& [name, size] : sizes) sizes_[name] = size;
  }

  std::vector<GraphNode> run() {
    Scope scope{.words = sizes_};
    expand(document_.at("nodes"), scope, fmt::format("{}.nodes", place_));
    if (nodes_.empty()) throw SpecError(fmt::format("{}.nodes: the graph is empty: give it an input first", place_));
    require_read();
    add_sums_of_gradients();
    return std::move(nodes_);
  }

 private:
  [[noreturn]] static void fail(const std::string& place, const std::string& message) {
    throw SpecError(fmt::format("{}: {}", place, message));
  }

  /// Returns `value` with every "$word" replaced.
  json resolved(const json& value, const Scope& scope, const std::string& place) const {
    if (value.is_string() && value.get_ref<const std::string&>().starts_with('$')) {
      const std::string word = value.get_ref<const std::string&>().substr(1);
      const auto found = scope.words.find(word);
      if (found != scope.words.end()) return found->second;
      std::vector<std::string> known;
      for (const auto& [name, size] : scope.words) known.push_back("$" + name);
      fail(place, known.empty() ? fmt::format("\"${}\" is no size: add \"sizes\" to the graph", word)
                                : fmt::format("\"${}\" is no size: {}", word, did_you_mean("$" + word, known)));
    }
    if (!value.is_array() && !value.is_object()) return value;
    json copy = value;
    for (auto& [key, inner] : copy.items()) inner = resolved(inner, scope, place);
    return copy;
  }

  std::vector<int> inputs_of(StrictObject& object, const Scope& scope, bool none_needed) {
    std::vector<int> inputs;
    if (!object.has("inputs")) {
      if (none_needed) return inputs;
      const auto before = scope.nodes.find("@previous");
      if (before == scope.nodes.end())
        fail(object.place(), "nothing stands before it: begin with an input, or name its inputs");
      return {before->second};
    }
    const json& names = object.raw("inputs");
    const bool texts =
        names.is_array() && std::ranges::all_of(names, [](const json& name) { return name.is_string(); });
    if (!texts) object.fail("inputs", "an array of the names of nodes is wanted");
    for (const json& name : names) {
      const auto& wanted = name.get_ref<const std::string&>();
      const auto found = scope.nodes.find(wanted);
      if (found == scope.nodes.end()) {
        std::vector<std::string> known;
        for (const auto& [text, index] : scope.nodes) known.push_back(text);
        object.fail("inputs",
                    fmt::format("no node before this one is named \"{}\": {}", wanted, did_you_mean(wanted, known)));
      }
      inputs.push_back(found->second);
    }
    return inputs;
  }

  /// Adds the nodes of a list one after the other, and their names to the scope.
  void expand(const json& list, Scope& scope, const std::string& place) {
    if (!list.is_array()) fail(place, "an array of nodes is wanted");
    if (list.size() > kMostGraphNodes) {
      fail(place, fmt::format("{} nodes are more than the {} that a graph may have: make it smaller", list.size(),
                              kMostGraphNodes));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::string here = fmt::format("{}[{}]", place, i);
      if (!list[i].is_object()) fail(here, "a node is an object with an \"op\" or a \"block\"");
      if (list[i].contains("name") && list[i]["name"].is_string())
        here += fmt::format(" ({})", scope.prefix + list[i]["name"].get<std::string>());
      if (list[i].contains("block")) {
        use_block(list[i], scope, here);
      } else {
        add_node(list[i], scope, here);
      }
    }
  }

  void add_node(const json& text, Scope& scope, const std::string& place) {
    const json value = resolved(text, scope, place);
    StrictObject object(value, place);
    const std::string op = object.text("op");
    const std::string local = object.text_or("name", fmt::format("{}-{}", op, nodes_.size()));
    const std::vector<int> inputs = inputs_of(object, scope, op == "input");
    OperatorInputs given{.attributes = object};
    for (const int input : inputs) given.nodes.push_back(&nodes_[input]);
    GraphNode node = make_node(op, given);
    node.name = scope.prefix + local;
    node.inputs = inputs;
    node.segment = scope.segment;
    node.runs = node.runs || node.layer.has_value();
    bool fed = false;
    for (const GraphNode* before : given.nodes) fed = fed || before->needs_grad;
    node.needs_grad = op != "input" && !node.tokens && (fed || !node.parameters.empty() || node.layer.has_value());
    if (node.layer && layer_parameters(*node.layer).empty()) node.needs_grad = fed;
    if (node.layer) node.parameters = layer_parameters(*node.layer);
    if (!fed && !node.layer) node.input_grad.clear();
    if (object.has("tied_to")) node.tied_to = tied_node(object, node, scope);
    if (element_count(node.shape) > kLargestTensor)
      fail(place, "its output is larger than any memory: check its sizes");
    object.finish();
    if (!scope.nodes.emplace(local, static_cast<int>(nodes_.size())).second)
      object.fail("name", fmt::format("two nodes are named \"{}\": rename one", local));
    nodes_.push_back(std::move(node));
    if (nodes_.size() > kMostGraphNodes)
      fail(place, fmt::format("the graph has more than {} nodes: make it smaller", kMostGraphNodes));
    scope.nodes["@previous"] = static_cast<int>(nodes_.size()) - 1;
  }

  int tied_node(StrictObject& object, const GraphNode& node, const Scope& scope) {
    const std::string name = object.text("tied_to");
    auto found = scope.nodes.find(name);
    const int tied = found != scope.nodes.end() ? found->second : top_level(name);
    const auto same = [&] { return nodes_[tied].parameters.front().shape == node.parameters.front().shape; };
    if (tied < 0 || nodes_[tied].parameters.empty() || !same()) {
      object.fail("tied_to",
                  fmt::format("\"{}\" is no node before this one whose first parameter is {}: name its embedding", name,
                              to_text(node.parameters.front().shape)));
    }
    return tied;
  }

  int top_level(const std::string& name) const {
    const auto found = std::ranges::find(nodes_, name, &GraphNode::name);
    return found == nodes_.end() ? -1 : static_cast<int>(found - nodes_.begin());
  }

  void use_block(const json& text, Scope& scope, const std::string& place) {
    const json value = resolved(text, scope, place);
    StrictObject object(value, place);
    const std::string name = object.text("block");
    const std::string local = object.text_or("name", fmt::format("{}-{}", name, nodes_.size()));
    const bool numbered = object.has("repeat");
    const std::int64_t repeat = object.positive_integer_or("repeat", 1);
    const std::int64_t first = object.non_negative_integer_or("from", 0);
    const json with = object.has("with") ? object.raw("with") : json::object();
    object.has("inputs");
    object.finish();
    if (!with.is_object()) object.fail("with", "an object of the block's parameters is wanted");
    const json* block = block_named(name, object);
    if (std::ranges::find(open_, name) != open_.end())
      object.fail("block", fmt::format("\"{}\" is used within itself", name));
    if (repeat > std::int64_t{kMostGraphNodes}) object.fail("repeat", fmt::format("give at most {}", kMostGraphNodes));

    const std::string block_place = fmt::format("{}.blocks.{}", place_, name);
    StrictObject definition(*block, block_place);
    const std::vector<std::string> parameters = texts_of(definition, "parameters", {});
    const std::vector<std::string> wanted = texts_of(definition, "inputs", {"input"});
    const json& nodes = definition.raw("nodes");
    definition.text_or("note", "");
    definition.finish();
    Scope inner{.words = sizes_};
    for (const std::string& parameter : parameters) {
      if (!with.contains(parameter))
        object.fail("with", fmt::format("block {} needs a \"{}\": add it", name, parameter));
      inner.words[parameter] = with.at(parameter);
    }
    for (const auto& [key, unused] : with.items()) {
      if (std::ranges::find(parameters, key) != parameters.end()) continue;
      object.fail("with", parameters.empty() ? fmt::format("block {} has no parameters: leave {} away", name, key)
                                             : fmt::format("block {} has no parameter \"{}\": {}", name, key,
                                                           did_you_mean(key, parameters)));
    }
    open_.push_back(name);
    for (std::int64_t i = 0; i < repeat; ++i) {
      const std::vector<int> inputs = inputs_of(object, scope, false);
      if (inputs.size() != wanted.size())
        object.fail("inputs",
                    fmt::format("block {} takes {} inputs, and {} are given", name, wanted.size(), inputs.size()));
      inner.nodes.clear();
      for (std::size_t k = 0; k < wanted.size(); ++k) inner.nodes["@" + wanted[k]] = inputs[k];
      inner.nodes["@previous"] = inputs.front();
      inner.prefix = fmt::format("{}{}.", scope.prefix, numbered ? fmt::format("{}.{}", local, first + i) : local);
      inner.segment = scope.segment >= 0 ? scope.segment : segments_++;
      const std::size_t before = nodes_.size();
      expand(nodes, inner, fmt::format("{}.nodes", block_place));
      if (nodes_.size() == before) fail(block_place, "it has no nodes: give it some");
      scope.nodes["@previous"] = static_cast<int>(nodes_.size()) - 1;
      if (!scope.nodes.emplace(numbered ? fmt::format("{}.{}", local, first + i) : local, scope.nodes["@previous"])
               .second)
        object.fail("name", fmt::format("two nodes are named \"{}\": rename one", local));
    }
    open_.pop_back();
  }

  const json* block_named(const std::string& name, StrictObject& object) const {
    std::vector<std::string> known;
    if (document_.contains("blocks") && document_.at("blocks").is_object()) {
      for (const auto& [key, block] : document_.at("blocks").items()) {
        if (key == name) return &block;
        known.push_back(key);
      }
    }
    object.fail("block", known.empty() ? fmt::format("no block is named \"{}\": add \"blocks\" to the graph", name)
                                       : fmt::format("no block is named \"{}\": {}", name, did_you_mean(name, known)));
  }

  static std::vector<std::string> texts_of(StrictObject& object, std::string_view key,
                                           std::vector<std::string> fallback) {
    if (!object.has(key)) return fallback;
    const json& value = object.raw(key);
    const bool texts =
        value.is_array() && std::ranges::all_of(value, [](const json& name) { return name.is_string(); });
    if (!texts) object.fail(key, "an array of names is wanted");
    return value.get<std::vector<std::string>>();
  }

  /// Throws SpecError if a node's output serves nothing.
  void require_read() const {
    std::vector<bool> read(nodes_.size(), false);
    for (const GraphNode& node : nodes_)
      for (const int input : node.inputs) read[input] = true;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (read[i] || nodes_[i].op == "loss" || i + 1 == nodes_.size()) continue;
      fail(place_,
           fmt::format("nobody reads node {}: name it in another's \"inputs\", or leave it out", nodes_[i].name));
    }
  }

  /// The gradient of a tensor that several nodes read is the sum of their gradients.
  void add_sums_of_gradients() {
    std::vector<int> readers(nodes_.size(), 0);
    for (const GraphNode& node : nodes_)
      for (const int input : node.inputs) ++readers[input];
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (readers[i] < 2 || !nodes_[i].needs_grad) continue;
      nodes_[i].input_grad.insert(
          nodes_[i].input_grad.begin(),
          traffic(3.0 * (readers[i] - 1) * static_cast<double>(element_count(nodes_[i].shape))));
    }
  }

  const json& document_;
  std::string place_;
  Sizes sizes_;
  std::vector<GraphNode> nodes_;
  std::vector<std::string> open_;  ///< blocks that are being used
  int segments_ = 0;
};

}  // namespace

bool is_layer_graph(const nlohmann::json& json) {
  return json.is_object() && json.contains("nodes");
}

bool has_blocks(const LayerGraph& graph) {
  return graph.definition.find("\"block\":") != std::string::npos;
}

LayerGraph layer_graph_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  LayerGraph graph;
  object.text("name");
  object.text_or("source", "");
  if (object.has("blocks")) object.object("blocks");
  object.raw("nodes");
  if (object.has("sizes")) {
    StrictObject sizes = object.object("sizes");
    for (const auto& [name, size] : json.at("sizes").items()) {
      constexpr std::int64_t kLargest = 1 << 24;
      const std::int64_t value = sizes.positive_integer(name);
      if (value > kLargest) sizes.fail(name, fmt::format("give at most {}", kLargest));
      graph.sizes[name] = value;
    }
  }
  object.finish();
  graph.definition = json_line(json);
  graph_nodes(graph, 0, place);
  return graph;
}

std::vector<GraphNode> graph_nodes(const LayerGraph& graph, std::int64_t sequence, const std::string& place) {
  std::map<std::string, std::int64_t> sizes = graph.sizes;
  if (sequence > 0 && sizes.contains("sequence")) sizes["sequence"] = sequence;
  const json document = json::parse(graph.definition);
  return Expansion(document, place, sizes).run();
}

std::int64_t parameter_count(const std::vector<GraphNode>& nodes) {
  return std::accumulate(nodes.begin(), nodes.end(), std::int64_t{0},
                         [](std::int64_t sum, const GraphNode& node) { return sum + parameter_count(node); });
}

double forward_flops(const std::vector<GraphNode>& nodes) {
  return std::accumulate(nodes.begin(), nodes.end(), 0.0,
                         [](double sum, const GraphNode& node) { return sum + forward_flops(node); });
}

bool is_runnable(const std::vector<GraphNode>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool chained = i == 0 ? nodes[i].op == "input" : nodes[i].inputs == std::vector{static_cast<int>(i) - 1};
    if (!nodes[i].runs || !chained) return false;
  }
  return nodes.back().op == "loss";
}

std::vector<Layer> runnable_layers(const std::vector<GraphNode>& nodes) {
  std::vector<Layer> layers;
  if (!is_runnable(nodes)) return layers;
  for (const GraphNode& node : nodes)
    if (node.layer) layers.push_back(*node.layer);
  return layers;
}

}}  // namespace plumb::planner
