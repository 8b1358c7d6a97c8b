#pragma once
// A model as a graph of layers, and its JSON form. Nodes stand in the order in which they are computed, each behind its
// inputs; without "inputs" a node reads the one before. Blocks are written once and used many times.
//
//   {"name": "tiny", "source": "...", "sizes": {"classes": 10},
//    "blocks": {"basic": {"parameters": ["width"], "nodes": [
//      {"name": "conv", "op": "convolution", "filters": "$width", "kernel": 3, "padding": 1, "bias": false},
//      {"name": "norm", "op": "batch_norm"},
//      {"op": "add", "inputs": ["norm", "@input"]}]}},
//    "nodes": [
//      {"name": "image", "op": "input", "shape": [32, 32, 3]},
//      {"name": "stem", "op": "convolution", "filters": 16, "kernel": 3, "padding": 1},
//      {"name": "stage", "block": "basic", "repeat": 3, "with": {"width": 16}},
//      {"op": "flatten"}, {"name": "head", "op": "linear", "out": "$classes"}, {"op": "loss"}]}
//
// "$word" is a parameter of the block, or one of the `sizes`; a size named "sequence" is the tokens of a training
// sequence. A block's nodes read what its use is given as "@input" (or by the names in its "inputs"); its last node is
// what it hands on. Uses with a "repeat" are named "stage.0", "stage.1", ... ("from": 1 begins with 1), and each
// is one unit of full recomputation.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/graph/graph_node.h"

namespace plumb { inline namespace planner {

/// As it is written: what a plan file keeps.
struct LayerGraph {
  std::string definition;  ///< JSON
  std::map<std::string, std::int64_t> sizes;

  friend bool operator==(const LayerGraph&, const LayerGraph&) = default;
};

/// Whether the JSON of a model is a layer graph: it has "nodes".
bool is_layer_graph(const nlohmann::json& json);

/// Whether it uses blocks, which full recomputation rebuilds.
bool has_blocks(const LayerGraph& graph);

/// Throws SpecError with the place and remedy of what is wrong, for which the whole graph is worked out once.
LayerGraph layer_graph_from_json(const nlohmann::json& json, const std::string& place);

/// Every node with its shape, kernels and tensors. `sequence` takes the place of the size of that name. Throws
/// SpecError naming the node (or the block) and the remedy: an operator that is not known, shapes that do not fit, an
/// input that is no node before it, a name given twice, a "$word" that nobody defines, a block within itself, more than
/// 2^14 nodes, no input, an end that is no loss where another node's output is unused.
std::vector<GraphNode> graph_nodes(const LayerGraph& graph, std::int64_t sequence = 0,
                                   const std::string& place = "graph");

/// Trained parameters; a shared table counts once.
std::int64_t parameter_count(const std::vector<GraphNode>& nodes);

/// FLOPs of the products of one sample's forward, two for each multiply and add.
double forward_flops(const std::vector<GraphNode>& nodes);

/// True if the executor runs them: a chain of its kinds from an input to a loss.
bool is_runnable(const std::vector<GraphNode>& nodes);

/// The layers of a chain that is_runnable; of others none.
std::vector<Layer> runnable_layers(const std::vector<GraphNode>& nodes);

}}  // namespace plumb::planner
