#include "planner/partition/pipedream_profile.h"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "planner/graph/layer_graph.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace {

const std::string kProfile =
    "node3 -- ReLU -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=[8.0; 4.0], "
    "parameter_size=0.0\n"
    "node1 -- Input -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=4.0, parameter_size=0.0\n"
    "node2 -- Linear(1, 2) -- forward_compute_time=3.0, backward_compute_time=4.0, activation_size=8.0, "
    "parameter_size=16.0\n"
    "\tnode1 -- node2\n"
    "\tnode2 -- node3\n";

}  // namespace

TEST_CASE("a profile is a graph of its layers, without the data's node and outputs that nothing reads") {
  const std::string unread =
      "node4 -- __getitem__(1) -- forward_compute_time=0, backward_compute_time=0, activation_size=2, "
      "parameter_size=0\n\tnode2 -- node4\n";
  const ProfiledGraph graph = parse_pipedream_profile(kProfile + unread, "graph.txt");
  REQUIRE(num_vertices(graph) == 2);
  CHECK(graph[0].name == "node3 ReLU");
  CHECK(graph[0].output_bytes == 12);
  CHECK(graph[1].name == "node2 Linear(1, 2)");
  CHECK(graph[1].ways.front().seconds.count() == doctest::Approx(7e-3));
  CHECK(graph[1].ways.front().weight_bytes == 16);
  CHECK(graph[1].ways.front().state_bytes == 64);  // with its gradient and Adam's two moments
  CHECK(num_edges(graph) == 1);
  CHECK(topological_order(graph, "graph.txt") == std::vector{1, 0});
}

TEST_CASE("a profile that is cut off, wrong or cyclic is refused by its line") {
  const auto refused = [](std::string text, const std::string& place, const std::string& part) {
    check_refused<SpecError>([&] { parse_pipedream_profile(text, "graph.txt"); }, place, part);
  };
  refused("", "graph.txt", "no node");
  refused("hello\n", "graph.txt:1", "neither a node");
  refused(kProfile + "\tnode2 -- node9\n", "graph.txt:6", "no node node9");
  refused(kProfile + "\tnode3 -- node2\n", "graph.txt", "cycle");
  refused("node1 -- X -- forward_compute_time=-1, backward_compute_time=0, activation_size=0, parameter_size=0\n",
          "graph.txt:1", "forward_compute_time");
  refused("node1 -- X -- forward_compute_time=1, activation_size=0, parameter_size=0\n", "graph.txt:1",
          "no backward_compute_time");
  refused(kProfile + kProfile, "graph.txt:6", "twice");
}

TEST_SUITE("oracle") {
  TEST_CASE("the weights and outputs that PipeDream measured of VGG-16 are those of the preset, layer by layer") {
    const std::optional<std::string> profile = shared_text("oracles/pipedream/vgg16.graph.txt");
    if (!profile) return;
    const ProfiledGraph measured = parse_pipedream_profile(*profile, "vgg16");
    const std::vector<GraphNode> nodes = graph_nodes(*preset_model("vgg-16").graph);
    std::vector<std::pair<double, double>> theirs, ours;  // bytes of weights and of the output
    constexpr double kFp32 = 4;
    for (const int node : topological_order(measured, "vgg16"))
      if (const double weights = measured[node].ways.front().weight_bytes; weights > 0)
        theirs.emplace_back(weights, measured[node].output_bytes);
    for (const GraphNode& node : nodes)
      if (!node.parameters.empty())
        ours.emplace_back(kFp32 * static_cast<double>(parameter_count(node)),
                          kFp32 * static_cast<double>(element_count(node.shape)));
    REQUIRE(theirs.size() == 16);
    const double images = theirs.front().second / ours.front().second;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      CHECK(theirs[i].first == ours[i].first);
      CHECK(theirs[i].second == doctest::Approx(images * ours[i].second));
    }
  }

  TEST_CASE("ResNet-50's and -101's measured weights add up to the presets'") {
    for (const auto& [profile, preset] : {std::pair{"resnet50", "resnet-50"}, std::pair{"resnet101", "resnet-101"}}) {
      CAPTURE(preset);
      const std::optional<std::string> text = shared_text(std::string("oracles/pipedream/") + profile + ".graph.txt");
      if (!text) return;
      double bytes = 0;
      const ProfiledGraph graph = parse_pipedream_profile(*text, profile);
      for (const auto node : boost::make_iterator_range(vertices(graph)))
        bytes += graph[node].ways.front().weight_bytes;
      CHECK(bytes == 4 * static_cast<double>(model_parameter_count(preset_model(preset))));
    }
  }

  TEST_CASE("every profile that was published can be read") {
    for (const char* name : {"densenet121", "gnmt", "gnmt_large", "inception_v3", "nasnetamobile", "resnet18",
                             "resnext101", "resnext50", "squeezenet1_0", "alexnet"}) {
      CAPTURE(name);
      const std::optional<std::string> text = shared_text(std::string("oracles/pipedream/") + name + ".graph.txt");
      if (!text) return;
      CHECK(num_vertices(parse_pipedream_profile(*text, name)) > 15);
    }
  }
}

}  // namespace plumb::test
