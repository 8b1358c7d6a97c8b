#include "planner/shard/node_axes.h"

#include <algorithm>
#include <optional>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/spec/model_spec.h"

namespace plumb::test { namespace {

using nlohmann::json;

std::vector<GraphNode> nodes_of(const char* text) {
  return graph_nodes(*model_from_json(json::parse(text), "graph").graph);
}

std::optional<NodeAxis> axis_of(const std::vector<NodeAxis>& axes, ShardingKind kind, int output) {
  const auto found = std::ranges::find_if(
      axes, [&](const NodeAxis& axis) { return axis.kind == kind && axis.output.dimension == output; });
  return found == axes.end() ? std::nullopt : std::optional(*found);
}

TEST_CASE("a product is divided by columns without partial sums of its output, and by rows with them") {
  const auto nodes = nodes_of(R"({"name": "g", "nodes": [{"name": "x", "op": "input", "shape": [16, 8]},
                                  {"op": "linear", "out": 32}]})");
  const std::vector<NodeAxis> axes = node_axes(nodes, 1);
  CHECK(axes.front().kind == ShardingKind::kBatch);
  CHECK(!axes.front().divides_parameters);
  const auto column = axis_of(axes, ShardingKind::kColumn, 2);
  REQUIRE(column.has_value());
  CHECK(column->size == 32);
  CHECK(!column->output.summed);
  CHECK(column->inputs.front() == TensorSide{.dimension = -1, .summed = true});
  const auto row = axis_of(axes, ShardingKind::kRow, -1);
  REQUIRE(row.has_value());
  CHECK(row->size == 8);
  CHECK(row->output.summed);
  CHECK(row->inputs.front() == TensorSide{.dimension = 2});
  // With sequence parallelism the sums are stored divided along the tokens.
  const auto scattered = axis_of(axes, ShardingKind::kRow, 1);
  REQUIRE(scattered.has_value());
  CHECK(scattered->output.summed);
}

TEST_CASE("a view shares the first dimension of each group") {
  const auto nodes = nodes_of(R"({"name": "g", "nodes": [{"name": "x", "op": "input", "shape": [16, 24]},
                                  {"op": "reshape", "shape": [16, 4, 6]}, {"op": "flatten"}]})");
  const std::vector<NodeAxis> heads = node_axes(nodes, 1);
  REQUIRE(heads.size() == 3);  // batch, tokens, heads
  CHECK(heads[1].size == 16);
  CHECK(heads[2].size == 4);
  CHECK(heads[2].inputs.front().dimension == 2);
  CHECK(heads[2].output.dimension == 2);
  const std::vector<NodeAxis> flat = node_axes(nodes, 2);
  REQUIRE(flat.size() == 2);
  CHECK(flat[1].size == 16);
}

TEST_CASE("a function that turns dimensions of different sizes keeps each of them apart") {
  const auto nodes = nodes_of(R"({"name": "g", "nodes": [{"name": "x", "op": "input", "shape": [16, 4, 6]},
                                  {"op": "tensor_function", "shape": [4, 16, 6], "keeps": "nothing"}]})");
  const auto heads = axis_of(node_axes(nodes, 1), ShardingKind::kSpatial, 1);
  REQUIRE(heads.has_value());
  CHECK(heads->inputs.front().dimension == 2);
}

TEST_CASE("a convolution on rows of pixels exchanges the rows that its kernel reaches") {
  const auto nodes = nodes_of(R"({"name": "g", "nodes": [{"name": "x", "op": "input", "shape": [32, 32, 8]},
                                  {"op": "convolution", "filters": 16, "kernel": 3, "padding": 1, "bias": false}]})");
  const auto spatial = axis_of(node_axes(nodes, 1), ShardingKind::kSpatial, 1);
  REQUIRE(spatial.has_value());
  REQUIRE(spatial->forward.size() == 1);
  CHECK(spatial->forward.front().elements == 2 * 32 * 8);
}

}}  // namespace plumb::test
