#include "planner/price/memory/graph_memory.h"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/graph/layer_graph.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

std::vector<GraphNode> nodes_of_text(const std::string& nodes) {
  const nlohmann::json graph = {{"name", "one"}, {"nodes", nlohmann::json::parse(nodes)}};
  return graph_nodes(layer_graph_from_json(graph, "one.json"));
}

const char* const kSkip = R"([{"name": "x", "op": "input", "shape": [4, 4, 8]},
  {"name": "a", "op": "convolution", "filters": 8, "kernel": 1, "bias": false},
  {"name": "b", "op": "convolution", "filters": 8, "kernel": 1, "bias": false},
  {"name": "c", "op": "convolution", "filters": 2, "kernel": 1, "bias": false},
  {"name": "d", "op": "convolution", "filters": 8, "kernel": 1, "bias": false},
  {"name": "sum", "op": "add", "inputs": ["d", "a"]},
  {"name": "flatten", "op": "flatten"}, {"name": "loss", "op": "loss"}])";

std::int64_t kept_bytes(const std::vector<LayerFootprint>& footprints) {
  return std::accumulate(footprints.begin(), footprints.end(), std::int64_t{0},
                         [](std::int64_t sum, const LayerFootprint& one) { return sum + one.kept_bytes; });
}

}  // namespace

TEST_CASE("all tensors that a later node reads cross a cut, a skip through every cut on its way") {
  const std::vector<GraphCut> cuts = graph_cuts(nodes_of_text(kSkip));
  const std::int64_t full = 4 * 4 * 8, narrow = 4 * 4 * 2;
  CHECK(cuts[0].elements == 0);
  CHECK(cuts[1] == GraphCut{.elements = full, .gradient_elements = 0, .tensors = 1});  // the image needs no gradient
  CHECK(cuts[2] == GraphCut{.elements = full, .gradient_elements = full, .tensors = 1});
  CHECK(cuts[3] ==
        GraphCut{.elements = 2 * full, .gradient_elements = 2 * full, .tensors = 2});  // b, and a for the sum
  CHECK(cuts[4] == GraphCut{.elements = narrow + full, .gradient_elements = narrow + full, .tensors = 2});
  CHECK(cuts[6].tensors == 1);
  CHECK(cuts[7].elements == full);  // flattened, it is the same tensor
  CHECK(cuts[8].elements == 0);
}

TEST_CASE("a tensor that two nodes of a stage read is kept once, and on each of two stages") {
  // b and the shortcut both read a.
  const std::vector<GraphNode> nodes = nodes_of_text(R"([{"name": "x", "op": "input", "shape": [4, 4, 8]},
    {"name": "a", "op": "convolution", "filters": 8, "kernel": 1, "bias": false},
    {"name": "b", "op": "convolution", "filters": 8, "kernel": 1, "bias": false},
    {"name": "shortcut", "op": "convolution", "filters": 8, "kernel": 1, "bias": false, "inputs": ["a"]},
    {"name": "sum", "op": "add", "inputs": ["b", "shortcut"]}, {"op": "flatten"}, {"op": "loss"}])");
  const TrainingSpec fp32{.global_batch = 1, .sequence = 1, .precision = Precision::kFp32};
  const std::int64_t tensor = 4 * 4 * 8 * 4;
  // x is kept for a, a for both, and the sum for the loss.
  CHECK(kept_bytes(graph_footprints(nodes, 0, 7, fp32, 1, Recompute::kNone)) == 3 * tensor);
  CHECK(kept_bytes(graph_footprints(nodes, 0, 3, fp32, 1, Recompute::kNone)) +
            kept_bytes(graph_footprints(nodes, 3, 7, fp32, 1, Recompute::kNone)) ==
        4 * tensor);
  CHECK(kept_bytes(graph_footprints(nodes, 0, 7, fp32, 5, Recompute::kNone)) == 5 * 3 * tensor);
}

TEST_CASE("a chain that the executor runs keeps what its layers say") {
  const ModelSpec model = preset_model("alexnet-32");
  const std::vector<GraphNode> nodes = graph_nodes(*model.graph);
  const TrainingSpec fp32{.global_batch = 8, .sequence = 1, .precision = Precision::kFp32};
  const auto footprints = graph_footprints(nodes, 0, static_cast<int>(nodes.size()), fp32, 8, Recompute::kNone);
  std::int64_t expected = 0;
  for (const Layer& layer : model_layers(model))
    expected += layer_footprint(layer, fp32, {.microbatch = 8}, Recompute::kNone).kept_bytes;
  CHECK(kept_bytes(footprints) == expected);
}

TEST_CASE("full recomputation keeps what enters each block, and rebuilds the rest of one at a time") {
  const std::vector<GraphNode> nodes = graph_nodes(*preset_model("resnet-50").graph);
  const TrainingSpec bf16{.global_batch = 1, .sequence = 1};
  const auto end = static_cast<int>(nodes.size());
  const auto whole = graph_footprints(nodes, 0, end, bf16, 1, Recompute::kNone);
  const auto blocks = graph_footprints(nodes, 0, end, bf16, 1, Recompute::kFull);
  CHECK(kept_bytes(blocks) < kept_bytes(whole) / 3);
  int rebuilt = 0;
  for (const LayerFootprint& footprint : blocks) rebuilt += footprint.rebuilt_whole ? 1 : 0;
  CHECK(rebuilt == 16);
  // Stage 1's first block receives its input, 56 x 56 x 64 numbers of the pooling.
  const auto first = std::ranges::find(blocks, true, &LayerFootprint::rebuilt_whole);
  CHECK(first->kept_bytes == 56 * 56 * 64 * 2);
}

TEST_CASE("a backward that is split holds on to what its weight gradients read") {
  const std::vector<GraphNode> nodes = graph_nodes(*preset_model("resnet-50").graph);
  const TrainingSpec bf16{.global_batch = 1, .sequence = 1};
  const auto footprints = graph_footprints(nodes, 0, static_cast<int>(nodes.size()), bf16, 1, Recompute::kNone);
  const StageMemory memory = stage_memory(footprints, bf16, {}, {.split = true});
  CHECK(memory.released_at_input_grad_bytes < memory.forward_bytes);
  CHECK(memory.forward_bytes > 0);
}

}  // namespace plumb::test
