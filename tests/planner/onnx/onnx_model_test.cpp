#include "planner/onnx/onnx_model.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/price/pricing.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/onnx/onnx_files.h"
#include "tests/planner/refusal.h"

namespace plumb::test { namespace {

using nlohmann::json;

std::vector<GraphNode> nodes_of(const std::string& bytes, const std::map<std::string, std::int64_t>& sizes = {}) {
  return graph_nodes(*model_from_onnx(bytes, "test.onnx", sizes).model.graph);
}

std::vector<GraphNode> graph_of(const char* text) {
  return graph_nodes(*model_from_json(json::parse(text), "graph").graph);
}

const GraphNode& named(const std::vector<GraphNode>& nodes, const std::string& name) {
  const auto found = std::ranges::find(nodes, name, &GraphNode::name);
  REQUIRE(found != nodes.end());
  return *found;
}

TEST_CASE("a residual block of ONNX has the FLOPs, weights and kernels of the same layer graph") {
  const std::vector<GraphNode> onnx = nodes_of(residual_network());
  const std::vector<GraphNode> graph = graph_of(R"({"name": "block", "nodes": [
    {"name": "image", "op": "input", "shape": [56, 56, 64]},
    {"name": "conv1", "op": "convolution", "filters": 64, "kernel": 1, "bias": false},
    {"op": "batch_norm"}, {"op": "relu"},
    {"op": "convolution", "filters": 64, "kernel": 3, "padding": 1, "bias": false},
    {"op": "batch_norm"}, {"op": "relu"},
    {"op": "convolution", "filters": 256, "kernel": 1, "bias": false},
    {"name": "norm3", "op": "batch_norm"},
    {"op": "convolution", "filters": 256, "kernel": 1, "bias": false, "inputs": ["image"]},
    {"name": "norm4", "op": "batch_norm"},
    {"op": "add", "inputs": ["norm3", "norm4"]}, {"op": "relu"},
    {"op": "adaptive_average_pooling", "size": 1}, {"op": "flatten"},
    {"op": "linear", "out": 10}, {"op": "loss"}]})");
  CHECK(onnx.size() == graph.size());
  CHECK(forward_flops(onnx) == forward_flops(graph));
  // He et al. 2016: 1x1, 3x3, 1x1 and the projection at 56 x 56, and the classifier.
  CHECK(forward_flops(onnx) == 2.0 * (3136.0 * (64 * 64 + 9 * 64 * 64 + 64 * 256 + 64 * 256) + 2560));
  CHECK(parameter_count(onnx) == parameter_count(graph));
  for (std::size_t i = 0; i < graph.size(); ++i) {
    CAPTURE(onnx[i].name);
    CHECK(onnx[i].op == graph[i].op);
    CHECK(onnx[i].shape == graph[i].shape);
    CHECK(onnx[i].forward == graph[i].forward);
    CHECK(onnx[i].input_grad == graph[i].input_grad);
    CHECK(onnx[i].weight_grad == graph[i].weight_grad);
  }
}

TEST_CASE("a transformer block that ONNX writes out has the FLOPs and weights of the layer graph's attention") {
  const std::vector<GraphNode> onnx = nodes_of(transformer_block());
  const std::vector<GraphNode> graph = graph_of(R"({"name": "block", "nodes": [
    {"name": "tokens", "op": "input", "tokens": 128},
    {"name": "x", "op": "embedding", "vocab": 1000, "hidden": 256},
    {"name": "attention", "op": "attention", "heads": 4, "fused": false},
    {"op": "add", "inputs": ["attention", "x"]}, {"name": "y", "op": "layer_norm"},
    {"op": "linear", "out": 1024}, {"op": "gelu"}, {"name": "down", "op": "linear", "out": 256},
    {"op": "add", "inputs": ["down", "y"]}, {"op": "layer_norm"}, {"op": "loss"}]})");
  CHECK(forward_flops(onnx) == forward_flops(graph));
  CHECK(parameter_count(onnx) == parameter_count(graph));
  CHECK(named(onnx, "scores").shape == TensorShape{4, 128, 128});
  CHECK(named(onnx, "joined").shape == TensorShape{128, 256});
  // The backward of a product with weights is two products of the same FLOPs.
  const GraphNode& up = named(onnx, "up");
  CHECK(product_flops(up.input_grad.front()) == product_flops(up.forward.front()));
  CHECK(product_flops(up.weight_grad.front()) == product_flops(up.forward.front()));
  for (const GraphNode& node : onnx) {
    CAPTURE(node.name);
    CHECK((!node.needs_grad || node.op == "reshape" || node.op == "loss" || !node.input_grad.empty() ||
           !node.weight_grad.empty() || node.op == "add"));
  }
}

TEST_CASE("a chain of ONNX layers is one that the executor runs") {
  OnnxWriter onnx;
  const std::string x = onnx.input("image", {3, 8, 8});
  const std::string conv =
      onnx.node("Conv", "conv", {x, onnx.weight("w", {4, 3, 3, 3}), onnx.weight("b", {4})}, {{"pads", {1, 1, 1, 1}}});
  const std::string pooled = onnx.node("MaxPool", "pool", {onnx.node("Relu", "relu", {conv})},
                                       {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}});
  onnx.output(onnx.node("Gemm", "head",
                        {onnx.node("Flatten", "flat", {pooled}), onnx.weight("v", {64, 10}), onnx.weight("c", {10})}));
  const std::vector<GraphNode> nodes = nodes_of(onnx.bytes());
  CHECK(is_runnable(nodes));
  CHECK(runnable_layers(nodes).size() == 5);  // input, convolution with ReLU, pooling, linear, loss
}

TEST_CASE("a table that embeds tokens and scores words is one parameter") {
  OnnxWriter onnx;
  const std::string ids = onnx.input("tokens", {16}, OnnxWriter::kInt64);
  onnx.weight("table", {100, 8});
  const std::string x = onnx.node("Gather", "words", {"table", ids});
  const std::string turned = onnx.node("Transpose", "turned", {"table"}, {{"perm", {1, 0}}});
  onnx.output(onnx.node("MatMul", "logits", {x, turned}));
  const std::vector<GraphNode> nodes = nodes_of(onnx.bytes());
  CHECK(parameter_count(nodes) == 800);
  CHECK(named(nodes, "logits").tied_to == 1);
}

TEST_CASE("an einsum has the FLOPs of its product") {
  OnnxWriter onnx;
  const std::string x = onnx.input("x", {32, 4, 16}), y = onnx.input("y", {24, 4, 16});
  const std::string product = onnx.node("Einsum", "scores", {x, y});
  plumb_onnx::AttributeProto& equation = *onnx.graph.mutable_node(0)->add_attribute();
  equation.set_name("equation");
  equation.set_s("bshd,bthd->bhst");
  onnx.output(product);
  const std::vector<GraphNode> nodes = nodes_of(onnx.bytes());
  CHECK(forward_flops(nodes) == 2.0 * 4 * 32 * 24 * 16);
}

TEST_CASE("a recurrent layer of ONNX has the FLOPs, weights and kernels of the layer graph's") {
  OnnxWriter onnx;
  const auto recurrent = [&](const std::string& op, const std::string& name, const std::string& from,
                             std::int64_t gates, std::int64_t in, std::int64_t hidden, std::int64_t directions) {
    const std::int64_t rows = gates * hidden;
    return onnx.node(
        op, name,
        {from, onnx.weight(name + ".w", {directions, rows, in}), onnx.weight(name + ".r", {directions, rows, hidden}),
         onnx.weight(name + ".b", {directions, 2 * rows})});
  };
  const std::string ids = onnx.input("tokens", {20}, OnnxWriter::kInt64);
  const std::string x = onnx.node("Gather", "words", {onnx.weight("table", {100, 8}), ids});
  const std::string turned = onnx.node("Transpose", "turned", {x}, {{"perm", {1, 0, 2}}});
  const std::string both = recurrent("LSTM", "lstm", turned, 4, 8, 16, 2);
  const std::string joined = onnx.node("Transpose", "joined", {both}, {{"perm", {0, 2, 1, 3}}});
  const std::string flat = onnx.node("Reshape", "flat", {joined, onnx.integers("rows", {20, 1, 32})});
  recurrent("GRU", "gru", flat, 3, 32, 24, 1);
  onnx.graph.mutable_node(onnx.graph.node_size() - 1)->add_output("gru.state");
  onnx.output(onnx.node("Gemm", "head",
                        {onnx.node("Reshape", "state", {"gru.state", onnx.integers("vector", {1, 24})}),
                         onnx.weight("v", {24, 10}), onnx.weight("c", {10})}));
  const std::vector<GraphNode> nodes = nodes_of(onnx.bytes());
  const std::vector<GraphNode> graph = graph_of(R"({"name": "reader", "nodes": [
    {"name": "tokens", "op": "input", "tokens": 20},
    {"op": "embedding", "vocab": 100, "hidden": 8},
    {"name": "lstm", "op": "lstm", "hidden": 16, "bidirectional": true},
    {"name": "gru", "op": "gru", "hidden": 24},
    {"name": "state", "op": "tensor_function", "shape": [24], "keeps": "nothing"},
    {"op": "linear", "out": 10}, {"op": "loss"}]})");
  CHECK(forward_flops(nodes) == forward_flops(graph));
  CHECK(parameter_count(nodes) == parameter_count(graph));
  for (const char* name : {"lstm", "gru"}) {
    CHECK(named(nodes, name).forward == named(graph, name).forward);
    CHECK(named(nodes, name).input_grad == named(graph, name).input_grad);
    CHECK(named(nodes, name).weight_grad == named(graph, name).weight_grad);
    CHECK(named(nodes, name).shape == named(graph, name).shape);
  }
}

TEST_CASE("convolutions over volumes, and transposed ones, have the FLOPs, weights and kernels of the layer graph's") {
  OnnxWriter onnx;
  const std::string x = onnx.input("x", {8, 4, 16, 16});
  const std::string down = onnx.node("Conv", "down", {x, onnx.weight("w", {32, 8, 3, 3, 3}), onnx.weight("b", {32})},
                                     {{"pads", {1, 1, 1, 1, 1, 1}}, {"strides", {1, 2, 2}}});
  const std::string pooled =
      onnx.node("MaxPool", "pool", {down}, {{"kernel_shape", {2, 2, 2}}, {"strides", {2, 2, 2}}});
  const std::string up =
      onnx.node("ConvTranspose", "up", {pooled, onnx.weight("v", {32, 8, 3, 3, 3})},
                {{"strides", {2, 2, 2}}, {"pads", {1, 1, 1, 1, 1, 1}}, {"output_padding", {1, 1, 1}}});
  onnx.output(up);
  const std::vector<GraphNode> nodes = nodes_of(onnx.bytes());
  const std::vector<GraphNode> graph = graph_of(R"({"name": "volume", "nodes": [
    {"name": "x", "op": "input", "shape": [4, 16, 16, 8]},
    {"name": "down", "op": "convolution", "filters": 32, "kernel": 3, "stride": [1, 2, 2], "padding": 1},
    {"name": "pool", "op": "max_pooling", "kernel": 2},
    {"name": "up", "op": "transposed_convolution", "filters": 8, "kernel": 3, "stride": 2, "padding": 1,
     "output_padding": 1, "bias": false}, {"op": "flatten"}, {"op": "loss"}]})");
  for (const char* name : {"down", "pool", "up"}) {
    CAPTURE(name);
    const GraphNode &one = named(nodes, name), &other = named(graph, name);
    CHECK(one.shape == other.shape);
    CHECK(one.forward == other.forward);
    CHECK(one.input_grad == other.input_grad);
    CHECK(one.weight_grad == other.weight_grad);
    CHECK(parameter_count(one) == parameter_count(other));
  }
  CHECK(named(nodes, "up").shape == TensorShape{4, 8, 8, 8});
}

TEST_CASE("an operator that is not known is priced by its bytes, and said") {
  OnnxWriter onnx;
  onnx.output(onnx.node("NewNorm", "new", {onnx.input("x", {32, 16}), onnx.weight("w", {16})}));
  check_refused<SpecError>([&] { nodes_of(onnx.bytes()); }, "node new (NewNorm)", "infer_shapes_path");
  auto& stated = *onnx.graph.add_value_info();
  stated.set_name("new");
  auto& shape = *stated.mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("batch");
  for (const int size : {32, 16}) shape.add_dim()->set_dim_value(size);
  const OnnxModel imported = model_from_onnx(onnx.bytes(), "test.onnx", {});
  REQUIRE(imported.notes.size() == 1);
  CHECK(imported.notes.front().find("NewNorm (x1)") != std::string::npos);
  const std::vector<GraphNode> nodes = graph_nodes(*imported.model.graph);
  const GraphNode& node = named(nodes, "new");
  CHECK(node.forward.front().elements == 2 * 32 * 16);
  CHECK(node.forward.front().fixed_elements == 16);
  CHECK(parameter_count(nodes) == 16);
}

TEST_CASE("an output behind the first is a layer where it is read, and nothing where it is not") {
  OnnxWriter onnx;
  const std::string x = onnx.input("x", {32, 16});
  onnx.node("Split", "half", {x}, {}, {{"axis", 1}});
  onnx.graph.mutable_node(0)->add_output("rest");
  onnx.node("Dropout", "dropped", {"half"});
  onnx.graph.mutable_node(1)->add_output("mask");
  onnx.output(onnx.node("Add", "sum", {"dropped", "rest"}));
  const std::vector<GraphNode> nodes = nodes_of(onnx.bytes());
  CHECK(named(nodes, "rest").shape == TensorShape{16, 16});
  CHECK(std::ranges::find(nodes, "mask", &GraphNode::name) == nodes.end());
}

TEST_CASE("a size with a name gets its number, and weights that lie elsewhere need only shapes") {
  OnnxWriter onnx;
  onnx.input("x", {1, 16});
  auto& sizes = *onnx.graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  sizes.mutable_dim(1)->clear_dim_value();
  sizes.mutable_dim(1)->set_dim_param("seq");
  onnx.output(onnx.node("MatMul", "y", {"x", onnx.weight("w", {16, 4})}));
  auto& weight = *onnx.graph.mutable_initializer(0);
  weight.set_data_location(1);
  auto& entry = *weight.add_external_data();
  entry.set_key("location");
  entry.set_value("weights.bin");
  check_refused<SpecError>([&] { nodes_of(onnx.bytes()); }, "test.onnx", "test.onnx:seq=128");
  const OnnxModel imported = model_from_onnx(onnx.bytes(), "test.onnx", {{"seq", 32}});
  CHECK(imported.external == "weights.bin");
  CHECK(forward_flops(graph_nodes(*imported.model.graph)) == 2.0 * 32 * 16 * 4);
}

TEST_CASE("a plan of an ONNX model has prices") {
  const OnnxModel imported = model_from_onnx(transformer_block(), "test.onnx", {});
  const Pricing pricing(imported.model, round_cluster(4), {.global_batch = 16, .sequence = 1});
  REQUIRE(pricing.graph() != nullptr);
  CHECK(pricing.flops_per_step() == doctest::Approx(3 * 16 * forward_flops(pricing.graph()->nodes)).epsilon(0.01));
}

}}  // namespace plumb::test
