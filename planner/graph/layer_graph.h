#pragma once
// A model as a graph of layers, and its JSON form. Nodes stand in the order in which they are computed, each behind its
// inputs. A node without "inputs" reads the node before it. Blocks are written once and used many times.
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
// "$word" is a parameter of the block, or one of the `sizes`. A size named "sequence" is the number of tokens of a
// training sequence. A block's nodes read the inputs of its use as "@input" (or by the names in the block's "inputs");
// the block's output is that of its last node. Uses with a "repeat" are named "stage.0", "stage.1", ... ("from": 1
// begins with 1). Full recomputation rebuilds each use as one unit.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/graph/graph_node.h"

namespace plumb { inline namespace planner {

/// A graph as its file has it; a plan file keeps this form.
struct LayerGraph {
  std::string definition;  ///< JSON
  std::map<std::string, std::int64_t> sizes;

  friend bool operator==(const LayerGraph&, const LayerGraph&) = default;
};

/// Returns true if the JSON of a model is a layer graph: it has "nodes".
bool is_layer_graph(const nlohmann::json& json);

/// Returns true if the graph uses blocks, which full recomputation rebuilds.
bool has_blocks(const LayerGraph& graph);

/// Reads the JSON form, and works out the whole graph once to check it. Throws SpecError with the place and the remedy.
LayerGraph layer_graph_from_json(const nlohmann::json& json, const std::string& place);

/// Returns every node with its shape, kernels and tensors. A `sequence` above 0 takes the place of the size of that
/// name. Throws SpecError naming the node (or the block) and the remedy: an unknown operator, shapes that do not fit,
/// an input that is no node before this one, a name given twice, a "$word" that nothing defines, a block within itself,
/// more than 2^14 nodes, an empty graph, an output that no node reads (other than that of a loss or of the last node).
std::vector<GraphNode> graph_nodes(const LayerGraph& graph, std::int64_t sequence = 0,
                                   const std::string& place = "graph");

/// Returns the number of trained parameters; a shared table counts once.
std::int64_t parameter_count(const std::vector<GraphNode>& nodes);

/// Returns the FLOPs of the products of one sample's forward: two for each multiply and add.
double forward_flops(const std::vector<GraphNode>& nodes);

/// Returns true if the executor runs the nodes: they are a chain of its layers from an input to a loss.
bool is_runnable(const std::vector<GraphNode>& nodes);

/// Returns the layers of a chain that is_runnable, and none for other graphs.
std::vector<Layer> runnable_layers(const std::vector<GraphNode>& nodes);

}}  // namespace plumb::planner
