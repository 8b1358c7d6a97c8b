#pragma once
// The price of pipeline ranks that are meshes of different shape: one with two tensor ranks, the next with two replicas
// (Zheng et al. 2022, Alpa). `plumb run --meshes` trains them.
//
//   price_unequal_stages(pricing, layout, order, {{.data = 1, .tensor = 2}, {.data = 2, .tensor = 1}}, {});
//
// The layout's `data` counts pipelines. A mesh with more data ranks divides the sequences of every micro-batch among
// data / layout.data of them, so that its rank computes fewer of them; its groups sit as those of a layout of its
// degrees do. Between meshes of different shape a message is a resharding (price/collective/resharding.h), the given
// kind or the fastest, which keeps the way between the two ranks for as long as it takes.

#include <optional>
#include <vector>

#include "planner/evaluate/priced_layout.h"
#include "planner/price/collective/resharding.h"

namespace plumb { inline namespace planner {

/// Data and tensor ranks of one pipeline rank.
struct RankMesh {
  int data = 1;
  int tensor = 1;

  friend bool operator==(const RankMesh&, const RankMesh&) = default;
};

/// The message of one micro-batch between two meshes of different shape.
struct Handover {
  int source = 0;
  int destination = 0;
  std::int64_t bytes = 0;  ///< the size of the tensor
  ReshardingPrice chosen;
};

struct UnequalStages {
  PricedLayout priced;          ///< of `layout` itself
  CostTable costs;              ///< [stage] on its rank's mesh
  std::vector<Layout> layouts;  ///< [pipeline rank] of its mesh, with the micro-batch of one of its ranks
  std::vector<Handover> handovers;
};

/// The model is split as under `layout` itself. Throws SpecError unless there is a mesh for each pipeline rank, whose
/// data ranks are a multiple of the layout's and divide its micro-batch; if the meshes need more devices than there
/// are; for mixtures of experts and layer graphs; and as price_layout does.
UnequalStages price_unequal_stages(Pricing& pricing, const Layout& layout, const Schedule& order,
                                   const std::vector<RankMesh>& meshes, std::optional<ReshardingKind> kind);

}}  // namespace plumb::planner
