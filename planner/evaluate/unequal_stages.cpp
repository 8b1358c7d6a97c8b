#include "planner/evaluate/unequal_stages.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/pipeline_hops.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/cluster_sites.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

void require_meshes(const Pricing& pricing, const Layout& layout, const std::vector<RankMesh>& meshes) {
  if (pricing.graph() != nullptr) throw SpecError("meshes of different shape: layer graphs have none, leave them out");
  if (site_count(pricing.cluster()) > 1)
    throw SpecError("meshes of different shape lie on one site: give a cluster of equal devices");
  if (pricing.model().experts > 0)
    throw SpecError("meshes of different shape: mixtures of experts do not go over them, give all stages one");
  if (static_cast<int>(meshes.size()) != layout.pipeline) {
    throw SpecError(fmt::format("meshes are given for {} pipeline ranks and there are {}: give each one", meshes.size(),
                                layout.pipeline));
  }
  int devices = 0;
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    const auto& [data, tensor] = meshes[rank];
    if (data < 1 || tensor < 1) {
      throw SpecError(
          fmt::format("the mesh of pipeline rank {} has {} x {} ranks: give at least one", rank, data, tensor));
    }
    if (data % layout.data != 0 || layout.microbatch % (data / layout.data) != 0) {
      throw SpecError(
          fmt::format("the mesh of pipeline rank {} has {} data ranks, which {} pipelines cannot share to divide "
                      "micro-batches of {} "
                      "sequences: choose another mesh or micro-batch",
                      rank, data, layout.data, layout.microbatch));
    }
    devices += data * tensor * layout.context;
  }
  if (devices > pricing.cluster().devices) {
    throw SpecError(fmt::format("the meshes need {} devices and the cluster has {}: take smaller ones", devices,
                                pricing.cluster().devices));
  }
}

Layout layout_on(Layout layout, const RankMesh& mesh, const std::vector<int>& split) {
  layout.microbatch /= mesh.data / layout.data;
  layout.data = mesh.data;
  layout.tensor = mesh.tensor;
  layout.sequence_parallel = layout.sequence_parallel && mesh.tensor > 1;
  layout.split = split;
  return layout;
}

/// The part of a mesh that belongs to one pipeline.
TensorMesh tensor_mesh(const Layout& on_mesh, int pipelines) {
  return {.data = on_mesh.data / pipelines,
          .tensor = on_mesh.tensor,
          .scattered = on_mesh.sequence_parallel && on_mesh.tensor > 1};
}

}  // namespace

UnequalStages price_unequal_stages(Pricing& pricing, const Layout& layout, const Schedule& order,
                                   const std::vector<RankMesh>& meshes, std::optional<ReshardingKind> kind) {
  require_meshes(pricing, layout, meshes);
  UnequalStages result{.priced = price_layout(pricing, layout, order)};
  result.costs = cost_table(result.priced);
  const std::vector<int> split = result.priced.split;
  std::vector<std::pair<Layout, CostTable>> known;
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    const Layout& on_mesh = result.layouts.emplace_back(layout_on(layout, meshes[rank], split));
    auto found = std::ranges::find(known, on_mesh, &std::pair<Layout, CostTable>::first);
    if (found == known.end())
      found = known.insert(known.end(), {on_mesh, cost_table(price_layout(pricing, on_mesh, order))});
    for (std::size_t stage = 0; stage < order.stages.size(); ++stage) {
      if (order.stages[stage].rank == static_cast<int>(rank)) result.costs.stages[stage] = found->second.stages[stage];
    }
  }

  const std::int64_t stream = output_elements(pricing.layers().front(), work_of(pricing.training(), layout)) *
                              (layout.sequence_parallel ? layout.tensor : 1) *
                              bytes_per_element(pricing.training().precision);
  const StageNeighbors neighbors = stage_neighbors(order);
  for (std::size_t stage = 0; stage < order.stages.size(); ++stage) {
    const int next = neighbors.successor[stage];
    if (next < 0) continue;
    const auto mesh_of = [&](std::size_t of) { return meshes[static_cast<std::size_t>(order.stages[of].rank)]; };
    if (mesh_of(stage) == mesh_of(static_cast<std::size_t>(next))) continue;
    result.costs.stages[stage].activation_message_bytes = stream;
    result.costs.stages[static_cast<std::size_t>(next)].gradient_message_bytes = stream;
  }
  for (const auto& hop : pipeline_hops(order)) {
    const int source = hop.first, destination = hop.second;
    const Layout& from = result.layouts[static_cast<std::size_t>(source)];
    const Layout& to = result.layouts[static_cast<std::size_t>(destination)];
    if (meshes[static_cast<std::size_t>(source)] == meshes[static_cast<std::size_t>(destination)]) continue;
    const auto told = std::ranges::find_if(result.handovers, [&](const Handover& handover) {
      return handover.source == source && handover.destination == destination;
    });
    if (told != result.handovers.end()) continue;
    const LinkCost link = pricing.hop(to, source, destination);
    const GroupPlacement gather = pricing.placements(to).inner[static_cast<std::size_t>(destination)].tensor;
    const TensorMesh sending = tensor_mesh(from, layout.data), receiving = tensor_mesh(to, layout.data);
    const ReshardingPrice chosen =
        kind ? resharding(pricing.collectives(), link, sending, receiving, gather, stream, *kind)
             : cheapest_resharding(pricing.collectives(), link, sending, receiving, gather, stream);
    result.handovers.push_back({.source = source, .destination = destination, .bytes = stream, .chosen = chosen});
    // A message between these two lasts as long as the resharding of its tensor.
    const Seconds busy = std::max(chosen.time - link.latency, Seconds{1e-12});
    result.costs.links[{source, destination}] = {.latency = std::min(link.latency, chosen.time),
                                                 .bytes_per_second = static_cast<double>(stream) / busy.count()};
  }
  return result;
}

}}  // namespace plumb::planner
