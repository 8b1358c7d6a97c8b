#include <algorithm>

#include <doctest/doctest.h>

#include "planner/onnx/onnx_model.h"
#include "planner/shard/sharding.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/onnx/onnx_files.h"

namespace plumb::test {

TEST_CASE("Megatron's sharding comes out of a transformer block that ONNX writes out") {
  const OnnxModel imported = model_from_onnx(transformer_block(512, 2048, 16), "block.onnx", {});
  Pricing pricing(imported.model, round_cluster(4), {.global_batch = 1, .sequence = 1});
  const std::vector<GraphNode>& nodes = pricing.graph()->nodes;
  const GroupPlacement four{.ranks = 4, .nodes = 1, .ranks_per_node = 4};
  const GraphSharding sharding =
      cheapest_sharding(pricing, {.begin = 0, .end = static_cast<int>(nodes.size()), .mesh = {GroupPlacement{}, four}});
  const auto axis_of = [&](const char* name) -> NodeAxis {
    const auto node = static_cast<int>(std::ranges::find(nodes, name, &GraphNode::name) - nodes.begin());
    const int axis = sharding.nodes[static_cast<std::size_t>(node)].axis[1];
    return axis < 0 ? NodeAxis{} : node_axes(nodes, node)[static_cast<std::size_t>(axis)];
  };
  for (const char* name : {"query", "key", "value", "up"}) {
    CAPTURE(name);
    CHECK(axis_of(name).kind == ShardingKind::kColumn);
  }
  for (const char* name : {"projection", "down"}) {
    CAPTURE(name);
    CHECK(axis_of(name).kind == ShardingKind::kRow);
  }
  // Between them each device has 4 of the 16 heads: dimension 1 of [heads, tokens, tokens].
  for (const char* name : {"scores", "shares", "mixed"}) {
    CAPTURE(name);
    CHECK(axis_of(name).output.dimension == 1);
    CHECK(axis_of(name).size == 16);
  }
}

}  // namespace plumb::test
