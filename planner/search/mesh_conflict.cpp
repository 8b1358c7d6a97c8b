#include "planner/search/mesh_conflict.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/spec/rank_layout.h"
#include "schedules/generators/catalogue.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns why keys of the layout do not go with meshes.
std::optional<std::string> key_conflict(const ModelSpec& model, const Layout& layout) {
  if (layout.tensor > 1)
    return fmt::format("meshes give each pipeline rank its tensor ranks: leave tp={} away", layout.tensor);
  if (model.experts > 0)
    return "mixtures of experts do not go over meshes of different shape: give all pipeline ranks one";
  if (layout.expert > 1 || layout.expert_tensor > 1)
    return "ep and etp divide experts, which meshes of different shape have not: leave both away";
  if (layout.shard > 0) return "meshes of different shape share state among all replicas: leave shard away";
  if (layout.bucket_mib > 0)
    return "meshes of different shape reduce their gradients behind the last backward: leave bucket_mib away";
  if (layout.order != RankOrder::kStagesApart)
    return fmt::format("meshes of different shape lie one behind the other: leave order={} away",
                       rank_order_name(layout.order));
  if (layout.offload != Offload{}) return "meshes of different shape have no offload: leave it away";
  if (model.graph && layout.chunks > 1)
    return fmt::format("a layer graph on meshes of different shape has one stage a rank: give v=1, not v={}",
                       layout.chunks);
  const bool divides = std::ranges::any_of(layout.meshes, [](const RankMesh& mesh) { return mesh.tensor > 1; });
  if (layout.sequence_parallel && !divides)
    return "sp=1 divides over tensor-parallel ranks, and no mesh has any: give sp=0, or a mesh with tp";
  const bool copies = std::ranges::any_of(
      catalogue(), [&](const CatalogueEntry& entry) { return entry.both_ends && entry.name == layout.schedule; });
  if (copies)
    return fmt::format("{} has copies of a stage on two ranks, whose meshes may differ: give schedule=1f1b",
                       layout.schedule);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> mesh_conflict(const ModelSpec& model, int devices, const Layout& layout) {
  if (layout.meshes.empty()) return std::nullopt;
  if (static_cast<int>(layout.meshes.size()) != layout.pipeline) {
    return fmt::format("meshes are given for {} pipeline ranks and there are {}: give each one", layout.meshes.size(),
                       layout.pipeline);
  }
  for (std::size_t rank = 0; rank < layout.meshes.size(); ++rank) {
    const int data = layout.meshes[rank].data;
    if (data % layout.data == 0 && layout.microbatch % (data / layout.data) == 0) continue;
    return fmt::format(
        "the mesh of pipeline rank {} has {} data ranks, which cannot divide the micro-batches of {} sequences of "
        "dp={} "
        "pipelines: choose another mesh or micro-batch",
        rank, data, layout.microbatch, layout.data);
  }
  if (const std::int64_t needed = devices_of(layout); needed != devices) {
    return fmt::format("the meshes need {} devices and the cluster has {}: choose meshes that sum up to {}", needed,
                       devices, devices);
  }
  return key_conflict(model, layout);
}

}}  // namespace plumb::planner
