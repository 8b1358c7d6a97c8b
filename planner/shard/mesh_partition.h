#pragma once
// A model cut into stages on meshes of their own, under Alpa's objective (Zheng et al. 2022; shard/mesh_pipeline.h), by
// the prices of the layouts that a plan may have: transformer layers over replicas and tensor ranks, the nodes of a layer
// graph over replicas.
//
//   const auto found = mesh_partition(pricing, {.microbatch = 4}, 12);
//   evaluate(pricing, found->layout)
//
// The layers are joined to groups of about equal time first, and a stage is some consecutive groups. The time of a stage
// is that of a micro-batch, and its share of the collectives and the optimizer's step at the end. Messages between
// stages take no time here, as in Alpa: the simulation has them.

#include <optional>

#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct MeshPartition {
  Layout layout;         ///< with its meshes and split
  Seconds objective{0};  ///< sum of the stages' times + (micro-batches - 1) times the slowest
  Seconds slowest{0};    ///< of a micro-batch
  int groups = 0;        ///< of layers
};

/// Returns the fastest stages on all devices of the cluster; nothing if none fits. `asked` has the micro-batch of the
/// pipeline, and the keys that all stages share. The groups are at most so many. Throws SpecError for a layout that has
/// no meshes (search/mesh_conflict.h), and if `asked` has degrees, chunks or a split of its own.
std::optional<MeshPartition> mesh_partition(Pricing& pricing, const Layout& asked, int groups);

/// Returns the meshes that a stage may have: powers of two of the devices of a node, or whole nodes, of which any share
/// within a node are tensor ranks. Replicas divide the micro-batch.
std::vector<RankMesh> possible_meshes(const Pricing& pricing, const Layout& asked);

}}  // namespace plumb::planner
