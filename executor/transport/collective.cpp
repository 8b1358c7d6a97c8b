#include "executor/transport/collective.h"

#include <array>

namespace plumb { inline namespace executor {

std::string_view collective_op_name(CollectiveOp op) {
  static constexpr std::array<std::string_view, kCollectiveOpCount> kNames = {
      "broadcast", "scatter", "gather", "reduce", "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "shift"};
  return kNames[static_cast<std::size_t>(op)];
}

Collective broadcast(std::span<float> values, int root) {
  return {.op = CollectiveOp::kBroadcast, .values = values, .root = root};
}

Collective scatter(std::span<float> values, int root, std::span<const std::int64_t> bounds) {
  return {.op = CollectiveOp::kScatter, .values = values, .bounds = bounds, .root = root};
}

Collective gather(std::span<float> values, int root, std::span<const std::int64_t> bounds) {
  return {.op = CollectiveOp::kGather, .values = values, .bounds = bounds, .root = root};
}

Collective reduce(std::span<float> values, int root) {
  return {.op = CollectiveOp::kReduce, .values = values, .root = root};
}

Collective all_gather(std::span<float> values, std::span<const std::int64_t> bounds) {
  return {.op = CollectiveOp::kAllGather, .values = values, .bounds = bounds};
}

Collective reduce_scatter(std::span<float> values, std::span<const std::int64_t> bounds) {
  return {.op = CollectiveOp::kReduceScatter, .values = values, .bounds = bounds};
}

Collective all_reduce(std::span<float> values) {
  return {.op = CollectiveOp::kAllReduce, .values = values};
}

Collective all_to_all(std::span<float> incoming, std::span<const float> outgoing,
                      std::span<const std::int64_t> incoming_bounds, std::span<const std::int64_t> outgoing_bounds) {
  return {.op = CollectiveOp::kAllToAll,
          .values = incoming,
          .bounds = incoming_bounds,
          .outgoing = outgoing,
          .outgoing_bounds = outgoing_bounds};
}

Collective shift(std::span<float> incoming, std::span<const float> outgoing, int distance) {
  return {.op = CollectiveOp::kShift, .values = incoming, .outgoing = outgoing, .distance = distance};
}

std::int64_t block_begin(std::int64_t elements, int blocks, int block) {
  return elements * block / blocks;
}

}}  // namespace plumb::executor
