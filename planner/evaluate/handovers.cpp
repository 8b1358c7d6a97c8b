#include "planner/evaluate/handovers.h"

#include <algorithm>
#include <utility>

#include "planner/evaluate/graph_stages.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/rank_layout.h"

namespace plumb { inline namespace planner {
namespace {

/// The part of a rank's mesh that belongs to one pipeline.
TensorMesh tensor_mesh(const Layout& of_rank, int pipelines) {
  return {.data = of_rank.data / pipelines, .tensor = of_rank.tensor, .scattered = of_rank.sequence_parallel};
}

/// Returns the bytes of a whole micro-batch that a model part sends on, and of the gradients that it sends back.
std::pair<std::int64_t, std::int64_t> whole_message_bytes(const Pricing& pricing, Layout layout,
                                                          const std::vector<int>& split, int part) {
  const std::int64_t element_bytes = bytes_per_element(pricing.training().precision);
  if (const GraphTables* graph = pricing.graph())
    return graph_message_bytes(*graph, split, part, layout.microbatch * element_bytes);
  layout.sequence_parallel = false;
  const std::int64_t stream =
      output_elements(pricing.layers().front(), work_of(pricing.training(), layout)) * element_bytes;
  return {stream, stream};
}

}  // namespace

PricedLayout with_handovers(Pricing& pricing, const Layout& layout, const Schedule& order, PricedLayout priced,
                            std::optional<ReshardingKind> kind) {
  priced.handovers.clear();
  if (layout.meshes.empty()) return priced;
  const auto hand_over = [&](int source, int destination, std::int64_t bytes) {
    const auto between = [&](const auto& one) { return one.source == source && one.destination == destination; };
    if (std::ranges::any_of(priced.handovers, between)) return;
    const Layout from = layout_of_rank(layout, source), to = layout_of_rank(layout, destination);
    const LinkCost link = pricing.hop(layout, source, destination);
    const GroupPlacement gather = pricing.placements(layout).inner[static_cast<std::size_t>(destination)].tensor;
    const TensorMesh sending = tensor_mesh(from, layout.data), receiving = tensor_mesh(to, layout.data);
    const ReshardingPrice chosen =
        kind ? resharding(pricing.collectives(), link, sending, receiving, gather, bytes, *kind)
             : cheapest_resharding(pricing.collectives(), link, sending, receiving, gather, bytes);
    priced.handovers.push_back({.source = source, .destination = destination, .bytes = bytes, .chosen = chosen});
    // A message between these two lasts as long as the resharding of its tensor.
    const Seconds busy = std::max(chosen.time - link.latency, Seconds{1e-12});
    const LinkCost as_long{.latency = std::min(link.latency, chosen.time),
                           .bytes_per_second = static_cast<double>(bytes) / busy.count()};
    for (StageLink& own : priced.links)
      if (between(own)) own.cost = as_long;
  };
  const StageNeighbors neighbors = stage_neighbors(order);
  for (std::size_t stage = 0; stage < order.stages.size(); ++stage) {
    if (neighbors.successor[stage] < 0) continue;
    const auto next = static_cast<std::size_t>(neighbors.successor[stage]);
    const StagePlace &from = order.stages[stage], &to = order.stages[next];
    if (layout.meshes[static_cast<std::size_t>(from.rank)] == layout.meshes[static_cast<std::size_t>(to.rank)])
      continue;
    const std::int64_t on = whole_message_bytes(pricing, layout, priced.split, from.model_part).first;
    const std::int64_t back = whole_message_bytes(pricing, layout, priced.split, to.model_part).second;
    priced.kinds.stages[static_cast<std::size_t>(priced.kind_of_stage[stage])].activation_message_bytes = on;
    priced.kinds.stages[static_cast<std::size_t>(priced.kind_of_stage[next])].gradient_message_bytes = back;
    hand_over(from.rank, to.rank, on);
    hand_over(to.rank, from.rank, std::max<std::int64_t>(back, 1));
  }
  return priced;
}

}}  // namespace plumb::planner
