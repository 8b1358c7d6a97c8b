#include "planner/shard/node_axes.h"

#include <algorithm>
#include <array>
#include <optional>

#include <doctest/doctest.h>
#include <fmt/format.h>
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

TEST_CASE("a volume is divided by planes and rows, and its kernel is a cube") {
  const auto nodes = nodes_of(R"({"name": "g", "nodes": [{"name": "x", "op": "input", "shape": [8, 16, 32, 4]},
                                  {"op": "convolution", "filters": 16, "kernel": 3, "padding": 1, "bias": false},
                                  {"op": "max_pooling", "kernel": 2}]})");
  const std::vector<NodeAxis> axes = node_axes(nodes, 1), pooled = node_axes(nodes, 2);
  const auto planes = axis_of(axes, ShardingKind::kSpatial, 1), rows = axis_of(axes, ShardingKind::kSpatial, 2);
  REQUIRE((planes && rows));
  CHECK(planes->size == 8);
  CHECK(planes->forward.front().elements == 2 * 16 * 32 * 4);
  CHECK(rows->forward.front().elements == 2 * 8 * 32 * 4);
  CHECK_FALSE(axis_of(axes, ShardingKind::kSpatial, 3));
  CHECK(axis_of(pooled, ShardingKind::kSpatial, 2)->size == 8);
  CHECK(axis_of(pooled, ShardingKind::kSpatial, 2)->forward.empty());
}

TEST_CASE("groups of channels are divided by group") {
  const auto nodes = nodes_of(R"({"name": "g", "nodes": [{"name": "x", "op": "input", "shape": [8, 8, 32]},
      {"op": "convolution", "filters": 64, "kernel": 3, "padding": 1, "bias": false, "groups": 4},
      {"op": "transposed_convolution", "filters": 32, "kernel": 2, "stride": 2, "groups": 8}]})");
  for (const int node : {1, 2}) {
    const auto grouped = axis_of(node_axes(nodes, node), ShardingKind::kColumn, 3);
    REQUIRE(grouped.has_value());
    CHECK(grouped->size == (node == 1 ? 4 : 8));
    CHECK(grouped->inputs.front() == TensorSide{.dimension = 3});
    CHECK_FALSE(axis_of(node_axes(nodes, node), ShardingKind::kRow, -1));
  }
}

/// [row of the output][row of the input] true if the input's row is part of the output's, in a transposed convolution.
std::vector<std::vector<bool>> touched_rows(int inputs, int kernel, int stride, int padding) {
  const int outputs = (inputs - 1) * stride + kernel - 2 * padding;
  std::vector<std::vector<bool>> touched(outputs, std::vector<bool>(inputs, false));
  for (int i = 0; i < inputs; ++i)
    for (int k = 0; k < kernel; ++k)
      if (const int o = i * stride + k - padding; o >= 0 && o < outputs) touched[o][i] = true;
  return touched;
}

TEST_CASE("a transposed convolution exchanges the rows of its output that inputs of two devices are part of") {
  for (const auto& [kernel, stride, padding] :
       std::vector<std::array<int, 3>>{{2, 2, 0}, {3, 1, 1}, {4, 2, 1}, {5, 1, 2}, {6, 2, 2}, {1, 1, 0}}) {
    CAPTURE(kernel);
    CAPTURE(stride);
    const auto nodes = nodes_of(fmt::format(R"({{"name": "g", "nodes": [
        {{"name": "x", "op": "input", "shape": [8, 8, 4]}},
        {{"op": "transposed_convolution", "filters": 6, "kernel": {}, "stride": {}, "padding": {}}}]}})",
                                            kernel, stride, padding)
                                    .c_str());
    const auto touched = touched_rows(8, kernel, stride, padding);
    std::int64_t shared = 0;  // rows of the output that both halves of the input are part of
    for (const std::vector<bool>& row : touched) {
      const bool first = std::any_of(row.begin(), row.begin() + 4, [](bool is) { return is; });
      const bool second = std::any_of(row.begin() + 4, row.end(), [](bool is) { return is; });
      shared += first && second ? 1 : 0;
    }
    const auto spatial = axis_of(node_axes(nodes, 1), ShardingKind::kSpatial, 1);
    REQUIRE(spatial.has_value());
    CHECK(spatial->size == 8);
    const std::int64_t row = element_count(nodes[1].shape) / nodes[1].shape[0];
    CHECK((spatial->forward.empty() ? 0 : spatial->forward.front().elements) == shared * row);
    const auto columns = axis_of(node_axes(nodes, 1), ShardingKind::kColumn, 3);
    const auto depth = axis_of(node_axes(nodes, 1), ShardingKind::kRow, -1);
    REQUIRE((columns && depth));
    CHECK(columns->size == 6);
    CHECK(depth->size == 4);
    CHECK(depth->output.summed);
  }
}

}}  // namespace plumb::test
