#include "planner/spec/rank_layout.h"

#include <algorithm>

namespace plumb { inline namespace planner {

RankMesh mesh_of_rank(const Layout& layout, int rank) {
  if (layout.meshes.empty()) return {.data = layout.data, .tensor = layout.tensor};
  return layout.meshes[static_cast<std::size_t>(rank)];
}

Layout layout_of_rank(const Layout& layout, int rank) {
  Layout of_rank = layout;
  if (layout.meshes.empty()) return of_rank;
  const RankMesh mesh = mesh_of_rank(layout, rank);
  of_rank.data = mesh.data;
  of_rank.tensor = mesh.tensor;
  of_rank.microbatch = layout.microbatch / (mesh.data / layout.data);
  of_rank.sequence_parallel = layout.sequence_parallel && mesh.tensor > 1;
  return of_rank;
}

int devices_of_rank(const Layout& layout, int rank) {
  const RankMesh mesh = mesh_of_rank(layout, rank);
  return mesh.data * mesh.tensor * layout.context;
}

int devices_before(const Layout& layout, int rank) {
  if (layout.meshes.empty()) return rank * devices_of_rank(layout, 0);
  int devices = 0;
  for (int before = 0; before < rank; ++before) devices += devices_of_rank(layout, before);
  return devices;
}

std::int64_t devices_of(const Layout& layout) {
  if (layout.meshes.empty()) return std::int64_t{layout.data} * layout.tensor * layout.context * layout.pipeline;
  std::int64_t devices = 0;
  for (const RankMesh& mesh : layout.meshes) devices += std::int64_t{mesh.data} * mesh.tensor * layout.context;
  return devices;
}

bool has_replicas(const Layout& layout) {
  return layout.data * layout.context > 1 ||
         std::ranges::any_of(layout.meshes, [](const RankMesh& mesh) { return mesh.data > 1; });
}

Layout with_equal_meshes_plain(Layout layout) {
  if (layout.meshes.empty()) return layout;
  const RankMesh first = layout.meshes.front();
  const bool alike = std::ranges::all_of(layout.meshes, [&](const RankMesh& mesh) { return mesh == first; });
  const bool divides = first.data % layout.data == 0 && layout.microbatch % (first.data / layout.data) == 0;
  if (!alike || !divides || layout.tensor > 1) return layout;
  layout = layout_of_rank(layout, 0);
  layout.meshes.clear();
  return layout;
}

}}  // namespace plumb::planner
