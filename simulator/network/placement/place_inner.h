#pragma once
// Says which links the collectives inside actions cross: tensor groups' rings, context groups' rings, expert groups'
// all-to-alls.
//
//   network = with_inner_collectives(place(fabric, 8, replicas, lowered, costs), fabric, 8,
//                                    {.ranks = grid, .experts = experts}, lowered, costs);

#include "simulator/network/placement/place.h"

namespace plumb { inline namespace simulator {

/// The groups of the collectives inside actions. Both grids have the world ranks of the network, in one order.
struct InnerGrids {
  ProcessGrid ranks;    ///< tensor and context groups
  ProcessGrid experts;  ///< its context groups share the routed experts
};

/// Returns the ranks of the `group` (kTensor, kContext or kExpert) that a world rank belongs to. Throws SpecError for
/// other groups.
std::vector<int> inner_group_ranks(const InnerGrids& grids, Group group, int world_rank);

/// Returns an all-to-all of `devices` as one flow: shares for each byte that a device sends, an equal part to every
/// other. Empty for fewer than two devices.
Route all_to_all_route(const Fabric& fabric, const std::vector<int>& devices);

/// Returns `placed` (by place(), none folded) with a flow for each tensor, context and expert group of each stage whose
/// actions have such segments. Sums over pipeline ranks inside actions (tied tables) have no flow and share nothing.
/// Throws SpecError if a grid has other ranks than `placed`.
NetworkSpec with_inner_collectives(NetworkSpec placed, const Fabric& fabric, int devices_per_node,
                                   const InnerGrids& grids, const Schedule& lowered, const CostTable& costs);

}}  // namespace plumb::simulator
