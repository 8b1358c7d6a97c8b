#include "planner/price/layer/graph_price.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/graph/layer_graph.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

GraphNode last_node(const std::string& nodes) {
  const nlohmann::json graph = {{"name", "one"}, {"nodes", nlohmann::json::parse(nodes)}};
  return graph_nodes(layer_graph_from_json(graph, "one.json")).back();
}

KernelPrices round_kernels() {
  return kernel_prices(round_cluster(1), {.global_batch = 1, .sequence = 1, .precision = Precision::kBf16}, 1);
}

}  // namespace

TEST_CASE("a product is bound by the peak, a pointwise function by memory") {
  const KernelPrices kernels = round_kernels();
  const GraphNode product = last_node(R"([{"name": "t", "op": "input", "tokens": 4096},
    {"name": "e", "op": "embedding", "vocab": 8, "hidden": 4096}, {"op": "linear", "out": 4096, "bias": false}])");
  // 2 * 4096^3 FLOPs at 100 TFLOP/s.
  CHECK(graph_node_price(kernels, product, 1).forward.compute.count() ==
        doctest::Approx(2 * 4096.0 * 4096 * 4096 / 100e12));
  const GraphNode relu = last_node(R"([{"name": "t", "op": "input", "shape": [1000, 1000]},
    {"name": "e", "op": "layer_norm"}, {"op": "relu"}])");
  // It reads and writes 2 bytes each at 1 TB/s; its backward reads two and writes one.
  const LayerPrice price = graph_node_price(kernels, relu, 10);
  CHECK(price.forward.compute.count() == doctest::Approx(10 * 2 * 2e6 / 1e12));
  CHECK(price.input_grad.compute.count() == doctest::Approx(10 * 3 * 2e6 / 1e12));
}

TEST_CASE("a convolution costs as much whether the executor runs it or not, but for the bias") {
  const KernelPrices kernels = round_kernels();
  const auto with = [&](const std::string& more) {
    return graph_node_price(kernels,
                            last_node(R"([{"name": "x", "op": "input", "shape": [56, 56, 64]},
      {"op": "convolution", "filters": 256, "kernel": 3, "padding": 1)" +
                                      more + "}]"),
                            32);
  };
  const LayerPrice runs = with(R"(, "activation": "none")"), priced = with(R"(, "bias": false)");
  const double bias = 2.0 * 32 * 56 * 56 * 256 * 2 / 1e12;  // added in place
  CHECK(runs.forward.compute.count() == doctest::Approx(priced.forward.compute.count() + bias).epsilon(1e-6));
  CHECK(priced.forward.compute.count() == doctest::Approx(2.0 * 32 * 56 * 56 * 256 * 576 / 100e12).epsilon(1e-6));
}

TEST_CASE("a recurrence takes its steps one after the other, a first layer no input gradient") {
  const KernelPrices kernels = round_kernels();
  const auto lstm = [&](int tokens) {
    const std::string text = R"([{"name": "x", "op": "input", "shape": [)" + std::to_string(tokens) +
                             R"(, 512]}, {"op": "lstm", "hidden": 512}])";
    return graph_node_price(kernels, last_node(text), 1);
  };
  CHECK(lstm(40).forward.compute / lstm(20).forward.compute == doctest::Approx(2).epsilon(0.05));
  CHECK(lstm(20).weight_grad.compute.count() > 0);
  CHECK(lstm(20).input_grad.compute.count() == 0);
}

TEST_CASE("what stands in a block can be rebuilt, at the price of its forward") {
  const KernelPrices kernels = round_kernels();
  for (const GraphNode& node : graph_nodes(*preset_model("resnet-50").graph)) {
    const LayerPrice price = graph_node_price(kernels, node, 4);
    CHECK(price.rebuild_full.compute == (node.segment >= 0 ? price.forward.compute : Seconds{0}));
  }
}

}  // namespace plumb::test
