#include "planner/shard/sharding.h"

#include <algorithm>
#include <limits>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/planner/fixtures.h"

namespace plumb::test { namespace {

using nlohmann::json;

ModelSpec graph_model(const std::string& text) {
  return model_from_json(json::parse(text), "graph");
}

/// A decoder block of GPT's form.
std::string block_text(int tokens, int hidden, int heads, const std::string& mlp) {
  return fmt::format(R"({{"name": "block", "nodes": [
    {{"name": "tokens", "op": "input", "tokens": {0}}},
    {{"name": "x", "op": "embedding", "vocab": 8192, "hidden": {1}}},
    {{"name": "norm1", "op": "layer_norm"}}, {{"name": "attention", "op": "attention", "heads": {2}, "causal": true}},
    {{"name": "add1", "op": "add", "inputs": ["attention", "x"]}}, {{"name": "norm2", "op": "layer_norm"}},
    {3},
    {{"name": "add2", "op": "add", "inputs": ["down", "add1"]}},
    {{"name": "head", "op": "linear", "out": 8192}}, {{"name": "loss", "op": "loss"}}]}})",
                     tokens, hidden, heads, mlp);
}

std::string dense_mlp(int hidden) {
  return fmt::format(R"({{"name": "up", "op": "linear", "out": {}, "activation": "gelu"}},
                        {{"name": "down", "op": "linear", "out": {}}})",
                     4 * hidden, hidden);
}

struct Sharded {
  const std::vector<GraphNode>& nodes;
  GraphSharding answer;

  int index(const std::string& name) const {
    return static_cast<int>(std::ranges::find(nodes, name, &GraphNode::name) - nodes.begin());
  }

  ShardingKind kind(const std::string& name, std::size_t axis) const {
    const int chosen = answer.nodes[static_cast<std::size_t>(index(name))].axis[axis];
    return chosen < 0 ? ShardingKind::kReplicate : node_axes(nodes, index(name))[static_cast<std::size_t>(chosen)].kind;
  }
};

Sharded sharded(Pricing& pricing, std::array<GroupPlacement, 2> mesh, std::int64_t samples, std::int64_t microbatches) {
  const auto& nodes = pricing.graph()->nodes;
  return {nodes, cheapest_sharding(pricing, {.begin = 0,
                                             .end = static_cast<int>(nodes.size()),
                                             .mesh = mesh,
                                             .samples = samples,
                                             .microbatches = microbatches})};
}

GroupPlacement in_a_node(int ranks) {
  return {.ranks = ranks, .nodes = 1, .ranks_per_node = ranks};
}

TEST_CASE("Megatron's column-then-row sharding of a transformer block comes out by itself") {
  // One sequence cannot be divided as a batch, and 400 MB of weights weigh more than 4 MB of activations.
  Pricing pricing(graph_model(block_text(512, 4096, 32, dense_mlp(4096))), round_cluster(4),
                  {.global_batch = 1, .sequence = 1});
  const Sharded block = sharded(pricing, {GroupPlacement{}, in_a_node(4)}, 1, 1);
  CHECK(block.answer.exact);
  CHECK(block.kind("attention", 1) == ShardingKind::kColumn);
  CHECK(block.kind("up", 1) == ShardingKind::kColumn);
  CHECK(block.kind("down", 1) == ShardingKind::kRow);
}

TEST_CASE("replicas go across nodes and tensor parallelism inside them") {
  Pricing pricing(graph_model(block_text(512, 4096, 32, dense_mlp(4096))), round_cluster(8),
                  {.global_batch = 16, .sequence = 1});
  const GroupPlacement across{.ranks = 2, .nodes = 2, .ranks_per_node = 1};
  const Sharded block = sharded(pricing, {across, in_a_node(4)}, 2, 64);
  CHECK(block.kind("up", 0) == ShardingKind::kBatch);
  CHECK(block.kind("down", 0) == ShardingKind::kBatch);
  CHECK(block.kind("up", 1) == ShardingKind::kColumn);
  CHECK(block.kind("down", 1) == ShardingKind::kRow);
}

TEST_CASE("experts are divided by expert, and what stands between them by batch, as in Alpa's plan for GShard") {
  const std::string experts = R"({"name": "down", "op": "experts", "count": 16, "ffn": 4096, "per_token": 2})";
  Pricing pricing(graph_model(block_text(1024, 512, 8, experts)), round_cluster(4),
                  {.global_batch = 32, .sequence = 1});
  const Sharded block = sharded(pricing, {GroupPlacement{}, in_a_node(4)}, 8, 1);
  CHECK(block.kind("down", 1) == ShardingKind::kExpert);
  CHECK(block.kind("attention", 1) == ShardingKind::kBatch);
  CHECK(block.kind("norm1", 1) == ShardingKind::kBatch);
}

TEST_CASE("Wide-ResNet is divided by batch where images are large and by channels where weights are") {
  const ModelSpec model = graph_model(R"({"name": "wide", "nodes": [
    {"name": "image", "op": "input", "shape": [56, 56, 64]},
    {"name": "early1", "op": "convolution", "filters": 128, "kernel": 3, "padding": 1, "bias": false},
    {"name": "norm1", "op": "batch_norm"}, {"name": "relu1", "op": "relu"},
    {"name": "early2", "op": "convolution", "filters": 128, "kernel": 3, "padding": 1, "bias": false},
    {"name": "pool", "op": "max_pooling", "kernel": 8},
    {"name": "late1", "op": "convolution", "filters": 4096, "kernel": 3, "padding": 1, "bias": false},
    {"name": "norm2", "op": "batch_norm"}, {"name": "relu2", "op": "relu"},
    {"name": "late2", "op": "convolution", "filters": 4096, "kernel": 3, "padding": 1, "bias": false},
    {"name": "average", "op": "adaptive_average_pooling", "size": 1}, {"name": "flat", "op": "flatten"},
    {"name": "head", "op": "linear", "out": 1024}, {"name": "loss", "op": "loss"}]})");
  Pricing pricing(model, round_cluster(4), {.global_batch = 32, .sequence = 1});
  const Sharded wide = sharded(pricing, {GroupPlacement{}, in_a_node(4)}, 32, 1);
  CHECK(wide.kind("early1", 1) == ShardingKind::kBatch);
  CHECK(wide.kind("early2", 1) == ShardingKind::kBatch);
  const auto by_channels = [&](const std::string& name) {
    const ShardingKind kind = wide.kind(name, 1);
    return kind == ShardingKind::kColumn || kind == ShardingKind::kRow;
  };
  CHECK(by_channels("late1"));
  CHECK(by_channels("late2"));
}

TEST_CASE("more kinds of sharding are never dearer, and one device needs none") {
  Pricing pricing(graph_model(block_text(256, 256, 4, dense_mlp(256))), round_cluster(4),
                  {.global_batch = 16, .sequence = 1});
  ShardingQuestion question{.begin = 0,
                            .end = static_cast<int>(pricing.graph()->nodes.size()),
                            .mesh = {in_a_node(2), in_a_node(2)},
                            .samples = 4,
                            .microbatches = 4};
  const GraphSharding all = cheapest_sharding(pricing, question);
  question.kinds = {ShardingKind::kBatch};
  const GraphSharding batch = cheapest_sharding(pricing, question);
  CHECK(all.cost <= batch.cost);
  CHECK(batch.parameters == parameter_count(pricing.graph()->nodes));
  question.mesh = {};
  question.kinds = {};
  const GraphSharding alone = cheapest_sharding(pricing, question);
  for (const NodeSharding& node : alone.nodes) CHECK(node == NodeSharding{});
  CHECK(all.cost < alone.cost);
}

/// Tries the choices of one node after the other, as long as what they cost is less than the best so far.
void try_all(const ShardingProblem& problem, std::vector<int>& choices, double cost, double& best) {
  if (cost >= best) return;
  const std::size_t node = choices.size();
  if (node == problem.choices.size()) {
    best = cost;
    return;
  }
  for (std::size_t choice = 0; choice < problem.choices[node].size(); ++choice) {
    double sum = cost + problem.costs.costs[node][choice];
    choices.push_back(static_cast<int>(choice));
    for (const PairCost& pair : problem.costs.pairs) {
      if (std::max(pair.first, pair.second) != static_cast<int>(node)) continue;
      sum += pair.costs[static_cast<std::size_t>(choices[pair.first]) * problem.choices[pair.second].size() +
                        static_cast<std::size_t>(choices[pair.second])];
    }
    try_all(problem, choices, sum, best);
    choices.pop_back();
  }
}

TEST_CASE("the cheapest sharding is that of trying every one, on 200 random graphs of up to 14 nodes") {
  std::mt19937 random(17);
  for (int trial = 0; trial < 200; ++trial) {
    const int count = 3 + static_cast<int>(random() % 10);
    json nodes = {{{"name", "image"}, {"op", "input"}, {"shape", {8, 64}}}};
    for (int i = 0; i < count; ++i) {
      const auto earlier = [&] { return nodes[static_cast<std::size_t>(1 + random() % (nodes.size() - 1))]["name"]; };
      json node = {{"name", fmt::format("n{}", i)}};
      if (i == 0 || random() % 3 == 0) {
        node.update({{"op", "linear"}, {"out", 64}, {"inputs", {i == 0 ? json("image") : earlier()}}});
      } else if (random() % 2 == 0) {
        node.update({{"op", "layer_norm"}, {"inputs", {earlier()}}});
      } else {
        node.update({{"op", "add"}, {"inputs", {earlier(), nodes.back()["name"]}}});
      }
      nodes.push_back(node);
    }
    // A sum of all that nobody reads ends the graph.
    std::vector<std::string> unread;
    for (const json& node : nodes) {
      const bool read = std::ranges::any_of(nodes, [&](const json& other) {
        return other.contains("inputs") && std::ranges::find(other["inputs"], node["name"]) != other["inputs"].end();
      });
      if (!read) unread.push_back(node["name"]);
    }
    if (unread.size() > 1) nodes.push_back({{"name", "sum"}, {"op", "add"}, {"inputs", unread}});
    Pricing pricing(model_from_json({{"name", "random"}, {"nodes", nodes}}, "random"), round_cluster(4),
                    {.global_batch = 8, .sequence = 1});
    const auto& graph = pricing.graph()->nodes;
    const ShardingQuestion question{.begin = 0,
                                    .end = static_cast<int>(graph.size()),
                                    .mesh = {GroupPlacement{}, in_a_node(4)},
                                    .samples = 4,
                                    .microbatches = 2};
    const ShardingProblem problem = sharding_problem(pricing, question);
    std::vector<int> choices;
    double best = std::numeric_limits<double>::infinity();
    try_all(problem, choices, 0, best);
    CAPTURE(trial);
    CHECK(cheapest_sharding(pricing, question).cost.count() == doctest::Approx(best).epsilon(1e-12));
  }
}

TEST_CASE("so it is on 60 random networks over volumes, which shrink and grow again") {
  std::mt19937 random(31);
  for (int trial = 0; trial < 60; ++trial) {
    json nodes = {{{"name", "volume"}, {"op", "input"}, {"shape", {8, 8, 8, 16}}}};
    const auto convolve = [&](const char* op, int filters, int kernel, int stride) {
      nodes.push_back({{"name", fmt::format("n{}", nodes.size())},
                       {"op", op},
                       {"filters", filters},
                       {"kernel", kernel},
                       {"stride", stride},
                       {"padding", stride == 1 ? kernel / 2 : 0}});
    };
    convolve("convolution", 16, 3, 1);
    for (int i = 0; i < 2; ++i) {
      const std::string whole = nodes.back()["name"];
      if (random() % 2 == 0) convolve("convolution", 16, 3, 1);
      convolve("convolution", 64, 2, 2);
      if (random() % 2 == 0) convolve("transposed_convolution", 64, 3, 1);
      convolve("transposed_convolution", 16, 2, 2);
      if (random() % 2 == 0)
        nodes.push_back({{"name", fmt::format("skip{}", i)}, {"op", "add"}, {"inputs", {nodes.back()["name"], whole}}});
    }
    Pricing pricing(model_from_json({{"name", "random"}, {"nodes", nodes}}, "random"), round_cluster(4),
                    {.global_batch = 8, .sequence = 1});
    const ShardingQuestion question{.begin = 0,
                                    .end = static_cast<int>(pricing.graph()->nodes.size()),
                                    .mesh = {GroupPlacement{}, in_a_node(4)},
                                    .samples = random() % 2 == 0 ? 4 : 1,
                                    .microbatches = 2};
    const ShardingProblem problem = sharding_problem(pricing, question);
    std::vector<int> choices;
    double best = std::numeric_limits<double>::infinity();
    try_all(problem, choices, 0, best);
    CAPTURE(trial);
    CHECK(cheapest_sharding(pricing, question).cost.count() == doctest::Approx(best).epsilon(1e-12));
  }
}

}}  // namespace plumb::test
