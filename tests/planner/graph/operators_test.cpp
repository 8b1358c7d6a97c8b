#include "planner/graph/operators.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/graph/layer_graph.h"
#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

using nlohmann::json;

/// Returns the node that an operator with these attributes makes of an input of this shape ("tokens" for 12 tokens).
GraphNode made(const std::string& input, const std::string& attributes) {
  const json begin = input == "tokens" ? json{{"name", "x"}, {"op", "input"}, {"tokens", 12}}
                                       : json{{"name", "x"}, {"op", "input"}, {"shape", json::parse(input)}};
  const json graph = {{"name", "one"}, {"nodes", {begin, json::parse(attributes)}}};
  return graph_nodes(layer_graph_from_json(graph, "one.json")).back();
}

}  // namespace

TEST_CASE("a convolution's windows are counted with stride, padding and dilation, by rows and columns") {
  CHECK(
      made("[224, 224, 3]", R"({"op": "convolution", "filters": 64, "kernel": 7, "stride": 2, "padding": 3})").shape ==
      TensorShape{112, 112, 64});
  CHECK(made("[32, 16, 8]", R"({"op": "convolution", "filters": 4, "kernel": [1, 7], "padding": [0, 3]})").shape ==
        TensorShape{32, 16, 4});
  CHECK(made("[32, 32, 8]", R"({"op": "convolution", "filters": 4, "kernel": 3, "dilation": 2})").shape ==
        TensorShape{28, 28, 4});
  CHECK(made("[100, 80]", R"({"op": "convolution", "filters": 16, "kernel": 5, "stride": 2})").shape ==
        TensorShape{48, 16});
  // In a depthwise convolution each filter sees one channel.
  const GraphNode depthwise = made(
      "[8, 8, 32]", R"({"op": "convolution", "filters": 32, "kernel": 3, "padding": 1, "groups": 32, "bias": false})");
  CHECK(parameter_count(depthwise) == 32 * 9);
  CHECK(forward_flops(depthwise) == 2 * 8 * 8 * 32 * 9);
}

TEST_CASE("windows move over volumes as over images") {
  // The first layer of C3D (Tran et al. 2015): 16 frames of 112 x 112.
  const GraphNode c3d = made("[16, 112, 112, 3]", R"({"op": "convolution", "filters": 64, "kernel": 3, "padding": 1})");
  CHECK(c3d.shape == TensorShape{16, 112, 112, 64});
  CHECK(forward_flops(c3d) == 2.0 * 16 * 112 * 112 * 64 * 27 * 3);
  CHECK(parameter_count(c3d) == 64 * 81 + 64);
  CHECK(made("[16, 112, 112, 64]", R"({"op": "max_pooling", "kernel": [1, 2, 2]})").shape ==
        TensorShape{16, 56, 56, 64});
  CHECK(made("[2, 7, 7, 512]", R"({"op": "adaptive_average_pooling", "size": 1})").shape == TensorShape{1, 1, 1, 512});
}

TEST_CASE("a transposed convolution has the FLOPs and weights of the convolution whose backward it is") {
  // The first step upwards of U-Net (Ronneberger et al. 2015): windows of 2 x 2, half of the channels.
  const GraphNode up = made(
      "[28, 28, 1024]", R"({"op": "transposed_convolution", "filters": 512, "kernel": 2, "stride": 2, "bias": false})");
  const GraphNode down =
      made("[56, 56, 512]", R"({"op": "convolution", "filters": 1024, "kernel": 2, "stride": 2, "bias": false})");
  CHECK(up.shape == TensorShape{56, 56, 512});
  CHECK(forward_flops(up) == 2.0 * 28 * 28 * 1024 * 512 * 4);
  CHECK(forward_flops(up) == forward_flops(down));
  CHECK(parameter_count(up) == parameter_count(down));
  const GraphNode grouped = made("[8, 8, 32]", R"({"op": "transposed_convolution", "filters": 16, "kernel": 3,
    "stride": 2, "padding": 1, "output_padding": 1, "groups": 4})");
  CHECK(grouped.shape == TensorShape{16, 16, 16});
  CHECK(forward_flops(grouped) == 2.0 * 64 * 32 * 4 * 9);
  CHECK(parameter_count(grouped) == 32 * 4 * 9 + 16);
  CHECK(
      made("[4, 4, 4, 8]", R"({"op": "transposed_convolution", "filters": 2, "kernel": 4, "stride": 2, "padding": 1})")
          .shape == TensorShape{8, 8, 8, 2});
}

TEST_CASE("a convolution that the executor runs is its layer, and counts as much as one that it does not run") {
  const char* text = R"({"op": "convolution", "filters": 64, "kernel": 3, "padding": 1, "bias": %})";
  const auto with = [&](const std::string& bias) {
    std::string filled = text;
    return made("[14, 14, 32]", filled.replace(filled.find('%'), 1, bias));
  };
  const GraphNode runs = with("true"), priced = with("false");
  CHECK(runs.layer);
  CHECK_FALSE(priced.layer);
  CHECK(forward_flops(runs) == forward_flops(priced));
  CHECK(parameter_count(runs) == parameter_count(priced) + 64);
}

TEST_CASE("forward, input gradient and weight gradient of a product have the same FLOPs") {
  const json graph = json::parse(R"({"name": "two", "nodes": [
    {"name": "t", "op": "input", "tokens": 12}, {"name": "e", "op": "embedding", "vocab": 100, "hidden": 8},
    {"name": "p", "op": "linear", "out": 5, "bias": false}]})");
  const GraphNode node = graph_nodes(layer_graph_from_json(graph, "two.json")).back();
  REQUIRE(node.forward.size() == 1);
  for (const auto* pass : {&node.forward, &node.input_grad, &node.weight_grad})
    CHECK(product_flops(pass->front()) == 2 * 12 * 8 * 5);
}

TEST_CASE("pooling rounds down, or up where asked for; an adaptive one has the size that it is given") {
  CHECK(made("[112, 112, 64]", R"({"op": "max_pooling", "kernel": 3, "stride": 2, "padding": 1})").shape ==
        TensorShape{56, 56, 64});
  CHECK(made("[13, 13, 8]", R"({"op": "max_pooling", "kernel": 2})").shape == TensorShape{6, 6, 8});
  CHECK(made("[13, 13, 8]", R"({"op": "max_pooling", "kernel": 2, "ceil": true})").shape == TensorShape{7, 7, 8});
  CHECK(made("[7, 7, 512]", R"({"op": "adaptive_average_pooling", "size": 1})").shape == TensorShape{1, 1, 512});
  CHECK(made("[10, 7, 4]", R"({"op": "adaptive_average_pooling", "size": [3, 2]})").shape == TensorShape{3, 2, 4});
  CHECK(made("[12, 12, 4]", R"({"op": "average_pooling", "kernel": 4})").layer);
}

TEST_CASE("an LSTM has the parameters of torch.nn.LSTM, in both directions twice") {
  CHECK(parameter_count(made("[50, 1024]", R"({"op": "lstm", "hidden": 1024})")) == 8'396'800);
  const GraphNode both = made("[50, 1024]", R"({"op": "lstm", "hidden": 1024, "bidirectional": true})");
  CHECK(parameter_count(both) == 16'793'600);
  CHECK(both.shape == TensorShape{50, 2048});
  // Each weight meets every token with 2 FLOPs; biases have none.
  CHECK(forward_flops(both) == 2.0 * 50 * 2 * (4 * 1024 * 2048));
}

TEST_CASE("a GRU has three gates of torch.nn.GRU, and an Elman network one of torch.nn.RNN") {
  const auto layer = [](const char* op, const char* more = "") {
    return made("[50, 300]", fmt::format(R"({{"op": "{}", "hidden": 200{}}})", op, more));
  };
  CHECK(parameter_count(layer("gru")) == 3 * 200 * (300 + 200 + 2));
  CHECK(parameter_count(layer("rnn")) == 200 * (300 + 200 + 2));
  CHECK(parameter_count(layer("gru", R"(, "bias": false)")) == 3 * 200 * (300 + 200));
  for (const auto& [op, gates] : {std::pair{"gru", 3.0}, std::pair{"rnn", 1.0}}) {
    CHECK(forward_flops(layer(op)) == 2 * 50 * gates * 200 * (300 + 200));
    CHECK(layer(op).shape == TensorShape{50, 200});
  }
  // Tensors of [tokens, h] that backward reads, beside input and output: an LSTM's gates and cells, a GRU's gates and the
  // product that its reset gate multiplies, the sum of an Elman network.
  const auto kept = [&](const char* op) {
    std::int64_t sum = 0;
    for (const OwnTensor& tensor : layer(op).own) sum += tensor.elements;
    return sum;
  };
  CHECK(kept("lstm") == 5 * 50 * 200);
  CHECK(kept("gru") == 4 * 50 * 200);
  CHECK(kept("rnn") == 50 * 200);
}

TEST_CASE("attention's products are four projections, and queries with keys and values") {
  const auto flops = [](const std::string& more) {
    return forward_flops(made("[16, 64]", fmt::format(R"({{"op": "attention", "heads": 4{}}})", more)));
  };
  const double projections = 2.0 * 16 * 4 * 64 * 64;
  CHECK(flops("") == projections + 2 * 2.0 * 16 * 16 * 64);
  CHECK(flops(R"(, "fused": false)") == projections + 2 * 2.0 * 16 * 16 * 64);
  CHECK(flops(R"(, "causal": true)") == projections + 2 * 2.0 * 16 * 17 / 2 * 64);  // a token sees itself and the past
  const GraphNode kept = made("[16, 64]", R"({"op": "attention", "heads": 4, "fused": false, "relative_buckets": 32})");
  CHECK(kept.own.front().elements == 16 * 16 * 4);
  CHECK(parameter_count(kept) == 4 * (64 * 64 + 64) + 32 * 4);
}

TEST_CASE("what a pointwise function keeps is its input or its output, and dropout nothing") {
  CHECK(made("[4, 8]", R"({"op": "gelu"})").saves_input == std::vector{true});
  CHECK_FALSE(made("[4, 8]", R"({"op": "gelu"})").saves_output);
  CHECK(made("[4, 8]", R"({"op": "relu"})").saves_output);
  const GraphNode dropped = made("[4, 8]", R"({"op": "dropout", "rate": 0.1})");
  CHECK(dropped.saves_input == std::vector{false});
  CHECK_FALSE(dropped.saves_output);
  CHECK(dropped.own.empty());
}

TEST_CASE("a slice of one place drops its axis; channels are put one behind the other") {
  CHECK(made("[12, 8]", R"({"op": "slice", "axis": 0})").shape == TensorShape{8});
  CHECK(made("[12, 8]", R"({"op": "slice", "axis": 1, "from": 2, "count": 4})").shape == TensorShape{12, 4});
  CHECK(made("[12, 8]", R"({"op": "concat", "inputs": ["x", "x"]})").shape == TensorShape{12, 16});
  CHECK(made("[3, 12, 8]", R"({"op": "matmul", "inputs": ["x", "x"], "transpose": true})").shape ==
        TensorShape{3, 12, 12});
}

TEST_CASE("experts count the products of the tokens that reach them, and the weights of all") {
  const GraphNode node = made("[16, 8]", R"({"op": "experts", "count": 4, "ffn": 32, "per_token": 2})");
  CHECK(node.shape == TensorShape{16, 8});
  CHECK(parameter_count(node) == 4 * 8 + 4 * 2 * 32 * 8);
  CHECK(forward_flops(node) == 2.0 * 16 * 8 * 4 + 2.0 * (2 * 16) * 8 * 32 * 2);
}

TEST_CASE("a view keeps the numbers, and a function of tensors moves its inputs, weights and output") {
  CHECK(made("[16, 8]", R"({"op": "reshape", "shape": [4, 4, 8]})").shape == TensorShape{4, 4, 8});
  CHECK(made("[16, 8]", R"({"op": "reshape", "shape": [128]})").forward.empty());
  const GraphNode node =
      made("[16, 8]", R"({"op": "tensor_function", "shape": [16, 4], "parameters": [[8]], "keeps": "inputs"})");
  CHECK(node.forward.front().elements == 16 * 8 + 16 * 4);
  CHECK(node.forward.front().fixed_elements == 8);
  CHECK(node.saves_input == std::vector<bool>{true});
  CHECK(parameter_count(node) == 8);
  check_refused<SpecError>([] { made("[16, 8]", R"({"op": "reshape", "shape": [100]})"); }, "shape", "does not hold");
  check_refused<SpecError>([] { made("[16, 8]", R"({"op": "tensor_function", "shape": [0]})"); }, "shape", "above 0");
}

TEST_CASE("an operator that does not fit its input is refused by its place and the remedy") {
  const auto refused = [](const std::string& input, const std::string& attributes, const std::string& part) {
    check_refused<SpecError>([&] { made(input, attributes); }, "one.json.nodes[1]", part);
  };
  refused("[4, 4, 8]", R"({"op": "convolution", "filters": 4, "kernel": 9})", "smaller kernel or more padding");
  refused("[4, 4, 8]", R"({"op": "convolution", "filters": 4, "kernel": 0})", "kernel");
  refused("[4, 4, 8]", R"({"op": "convolution", "filters": 4, "kernel": 1, "groups": 3})", "3 groups do not divide 8");
  refused("[8]", R"({"op": "convolution", "filters": 4, "kernel": 1})", "an image is");
  refused("[4, 4, 4, 8]", R"({"op": "convolution", "filters": 4, "kernel": [3, 3]})", "one for each axis");
  refused("[2, 4, 4, 8]", R"({"op": "convolution", "filters": 4, "kernel": 3})", "3 does not fit into the 2 planes");
  refused("[1, 1, 8]", R"({"op": "transposed_convolution", "filters": 4, "kernel": 1, "padding": 1})",
          "leaves no rows");
  refused("[4, 8]", R"({"op": "embedding", "vocab": 4, "hidden": 4})", "input of tokens");
  refused("tokens", R"({"op": "linear", "out": 4})", "put an embedding before");
  refused("tokens", R"({"op": "relu"})", "put an embedding before");
  refused("[12, 10]", R"({"op": "attention", "heads": 4})", "give a head_size");
  refused("[12, 8]", R"({"op": "positions", "rows": 10})", "sequences of 10 or fewer");
  refused("[12, 8]", R"({"op": "add"})", "takes at least 2 inputs");
  refused("[12, 8]", R"({"op": "dropout", "rate": 1})", "below 1");
  refused("[12, 8]", R"({"op": "slice", "axis": 2})", "axis 2");
  refused("[12, 8]", R"({"op": "matmul", "inputs": ["x", "x"]})", "no product");
  refused("[12, 8]", R"({"op": "linear", "out": 12, "tied_to": "x"})", "name its embedding");
}

}  // namespace plumb::test
