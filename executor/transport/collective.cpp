#include "executor/transport/collective.h"

namespace plumb { inline namespace executor {

Collective broadcast(std::span<float> values, int root) {
  return {.op = CollectiveKind::kBroadcast, .values = values, .root = root};
}

Collective scatter(std::span<float> values, int root, std::span<const std::int64_t> bounds) {
  return {.op = CollectiveKind::kScatter, .values = values, .bounds = bounds, .root = root};
}

Collective gather(std::span<float> values, int root, std::span<const std::int64_t> bounds) {
  return {.op = CollectiveKind::kGather, .values = values, .bounds = bounds, .root = root};
}

Collective reduce(std::span<float> values, int root) {
  return {.op = CollectiveKind::kReduce, .values = values, .root = root};
}

Collective all_gather(std::span<float> values, std::span<const std::int64_t> bounds) {
  return {.op = CollectiveKind::kAllGather, .values = values, .bounds = bounds};
}

Collective reduce_scatter(std::span<float> values, std::span<const std::int64_t> bounds) {
  return {.op = CollectiveKind::kReduceScatter, .values = values, .bounds = bounds};
}

Collective all_reduce(std::span<float> values) {
  return {.op = CollectiveKind::kAllReduce, .values = values};
}

Collective all_to_all(std::span<float> incoming, std::span<const float> outgoing,
                      std::span<const std::int64_t> incoming_bounds, std::span<const std::int64_t> outgoing_bounds) {
  return {.op = CollectiveKind::kAllToAll,
          .values = incoming,
          .bounds = incoming_bounds,
          .outgoing = outgoing,
          .outgoing_bounds = outgoing_bounds};
}

Collective shift(std::span<float> incoming, std::span<const float> outgoing, int distance) {
  return {.op = CollectiveKind::kShift, .values = incoming, .outgoing = outgoing, .distance = distance};
}

}}  // namespace plumb::executor
