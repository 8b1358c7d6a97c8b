#include "planner/graph/layer_graph.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/spec/model_spec.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

using nlohmann::json;

struct PublishedGraph {
  const char* preset;
  std::int64_t parameters;  ///< 0: not published
  double giga_macs;         ///< of one forward; 0: not published
  const char* source;
};

constexpr PublishedGraph kPublishedGraphs[] = {
    {"alexnet", 60'965'224, 0, "Krizhevsky et al. 2012: 60 million; exact count of its two-group layers"},
    {"alexnet-one-tower", 61'100'840, 0.714, "torchvision.models.alexnet, AlexNet_Weights"},
    {"vgg-11", 132'863'336, 7.609, "torchvision.models.vgg11"},
    {"vgg-16", 138'357'544, 15.470, "torchvision.models.vgg16"},
    {"vgg-19", 143'667'240, 19.632, "torchvision.models.vgg19"},
    {"resnet-50", 25'557'032, 4.089, "torchvision.models.resnet50"},
    {"resnet-101", 44'549'160, 7.801, "torchvision.models.resnet101"},
    {"wide-resnet-50-2", 68'883'240, 11.398, "torchvision.models.wide_resnet50_2"},
    {"wide-resnet-101-2", 126'886'696, 22.753, "torchvision.models.wide_resnet101_2"},
    {"bert-base", 110'106'428, 0, "Hugging Face BertForPreTraining, bert-base-uncased"},
    {"bert-large", 336'226'108, 0, "Hugging Face BertForPreTraining, bert-large-uncased"},
    {"t5-small", 60'506'624, 0, "google-t5/t5-small, model page"},
    {"t5-base", 222'903'552, 0, "google-t5/t5-base, model page"},
    {"t5-large", 737'668'096, 0, "google-t5/t5-large, model page"},
    {"t5-3b", 2'851'598'336, 0, "google-t5/t5-3b, model page"},
    {"t5-11b", 11'307'321'344, 0, "google-t5/t5-11b, model page"},
    {"gnmt-8", 160'671'297, 0, "NVIDIA GNMT v2, MLPerf: 160,671,297 parameters printed by its training script"},
};

json tiny() {
  return json::parse(R"({
    "name": "tiny", "source": "a test", "sizes": {"classes": 10},
    "blocks": {"basic": {"parameters": ["width"], "nodes": [
      {"name": "conv", "op": "convolution", "filters": "$width", "kernel": 3, "padding": 1, "bias": false},
      {"name": "norm", "op": "batch_norm"},
      {"name": "add", "op": "add", "inputs": ["norm", "@input"]}]}},
    "nodes": [
      {"name": "image", "op": "input", "shape": [32, 32, 3]},
      {"name": "stem", "op": "convolution", "filters": 16, "kernel": 3, "padding": 1},
      {"name": "stage", "block": "basic", "repeat": 2, "with": {"width": 16}},
      {"name": "flatten", "op": "flatten"},
      {"name": "head", "op": "linear", "out": "$classes"},
      {"name": "loss", "op": "loss"}]})");
}

std::vector<GraphNode> nodes_of(const json& graph) {
  return graph_nodes(layer_graph_from_json(graph, "tiny.json"));
}

}  // namespace

TEST_CASE("the parameters and multiply-adds of every network preset are the published ones") {
  for (const PublishedGraph& published : kPublishedGraphs) {
    CAPTURE(published.preset);
    CAPTURE(published.source);
    const ModelSpec model = preset_model(published.preset);
    REQUIRE(model.graph);
    CHECK(model_parameter_count(model) == published.parameters);
    CHECK_FALSE(model.source.empty());
    if (published.giga_macs > 0) {
      CHECK(forward_flops(graph_nodes(*model.graph)) / 2e9 == doctest::Approx(published.giga_macs).epsilon(0.001));
    }
  }
}

TEST_CASE("a block is used as often as asked for, by names of its own, each use a unit of recomputation") {
  const std::vector<GraphNode> nodes = nodes_of(tiny());
  REQUIRE(nodes.size() == 2 + 2 * 3 + 3);
  CHECK(nodes[2].name == "stage.0.conv");
  CHECK(nodes[7].name == "stage.1.add");
  CHECK(nodes[7].inputs == std::vector<int>{6, 4});  // its norm and the block's input
  CHECK(nodes[1].segment == -1);
  CHECK(nodes[4].segment == 0);
  CHECK(nodes[5].segment == 1);
  CHECK(nodes[9].shape == TensorShape{10});
  CHECK(parameter_count(nodes) == (16 * 27 + 16) + 2 * (16 * 16 * 9 + 32) + (10 * 32 * 32 * 16 + 10));
}

TEST_CASE("a chain of the executor's kinds runs, and a graph with a skip does not") {
  CHECK(is_runnable(graph_nodes(*preset_model("vgg-16").graph)));
  CHECK(is_runnable(graph_nodes(*preset_model("mlp").graph)));
  CHECK(runnable_layers(graph_nodes(*preset_model("alexnet").graph)).size() == 13);
  CHECK_FALSE(is_runnable(nodes_of(tiny())));
  CHECK(runnable_layers(nodes_of(tiny())).empty());
  CHECK_FALSE(is_runnable(graph_nodes(*preset_model("resnet-50").graph)));
}

TEST_CASE("the layers of a graph are those that its words say") {
  const std::vector<Layer> layers = model_layers(preset_model("alexnet"));
  CHECK(layers[1] == Layer(ConvolutionLayer{.height = 224,
                                            .width = 224,
                                            .channels = 3,
                                            .filters = 96,
                                            .kernel = 11,
                                            .stride = 4,
                                            .padding = 2,
                                            .input_grad = false}));
  CHECK(layers[9] == Layer(LinearLayer{.in = 9216, .out = 4096, .activation = Activation::kRelu, .dropout = 0.5}));
}

TEST_CASE("the tokens of a training sequence take the place of the size of that name") {
  const ModelSpec bert = preset_model("bert-base");
  const std::vector<GraphNode> nodes = graph_nodes(*bert.graph, 128);
  CHECK(nodes.front().shape == TensorShape{128});
  CHECK(parameter_count(nodes) == model_parameter_count(bert));
  // The products are linear in the tokens, except those of queries with keys and of probabilities with values.
  CHECK(forward_flops(nodes) < forward_flops(graph_nodes(*bert.graph)) / 4);
  CHECK(has_sequence(bert));
  CHECK_FALSE(has_sequence(preset_model("resnet-50")));
}

TEST_CASE("a graph is written as it was read") {
  const ModelSpec model = preset_model("resnet-50");
  CHECK(parse_model(to_json(model).dump(), "again") == model);
}

TEST_CASE("a bad graph is refused with the node and the remedy") {
  const auto refused = [](auto change, const std::string& place, const std::string& part) {
    json graph = tiny();
    change(graph);
    check_refused<SpecError>([&] { nodes_of(graph); }, place, part);
  };
  refused([](json& g) { g["nodes"][1]["op"] = "convolutoin"; }, "nodes[1] (stem)", "did you mean \"convolution\"?");
  refused([](json& g) { g["nodes"][1]["filterz"] = 1; }, "nodes[1] (stem): filterz", "\"filters\"");
  refused([](json& g) { g["nodes"][1]["inputs"] = {"imag"}; }, "nodes[1] (stem)", "did you mean \"image\"?");
  refused([](json& g) { g["nodes"][4]["out"] = "$clases"; }, "nodes[4] (head)", "did you mean \"$classes\"?");
  refused([](json& g) { g["nodes"][2]["block"] = "basics"; }, "nodes[2] (stage): block", "did you mean \"basic\"?");
  refused([](json& g) { g["nodes"][2]["with"] = {{"widht", 16}}; }, "nodes[2] (stage): with", "needs a \"width\"");
  refused([](json& g) { g["nodes"][2]["with"]["widht"] = 16; }, "nodes[2] (stage): with", "did you mean \"width\"?");
  refused([](json& g) { g["nodes"][2]["with"]["width"] = 8; }, "(stage.0.add)", "they must be alike");
  refused([](json& g) { g["nodes"][3]["name"] = "stem"; }, "nodes[3] (stem)", "two nodes");
  refused([](json& g) { g["nodes"].erase(3); }, "nodes[3] (head)", "flatten it first");
  refused([](json& g) { g["nodes"].erase(0); }, "nodes[0] (stem)", "begin with an input");
  refused([](json& g) { g["nodes"][4]["inputs"] = {"image"}; }, "tiny.json", "");
  refused([](json& g) { g["nodes"] = json::array(); }, "tiny.json", "empty");
  refused(
      [](json& g) {
        g["blocks"]["basic"]["nodes"].push_back({{"block", "basic"}, {"with", {{"width", 16}}}});
      },
      "blocks.basic.nodes[3]", "within itself");
  refused([](json& g) { g["nodes"][2]["repeat"] = 1 << 20; }, "nodes[2] (stage): repeat", "at most");
  refused(
      [](json& g) {
        g["nodes"].insert(g["nodes"].begin() + 1, json{{"name", "idle"}, {"op", "relu"}});
        g["nodes"][2]["inputs"] = {"image"};
      },
      "tiny.json", "nobody reads node idle");
  refused([](json& g) { g["size"] = 1; }, "tiny.json: size", "\"sizes\"");
}

}  // namespace plumb::test
