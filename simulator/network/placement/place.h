#pragma once
// Places the ranks of a layout on devices, and so says which links their messages and collectives cross.
//
//   NetworkSpec network = place(fabric_of(spec), 8, {.tensor = 8, .context = 4, .pipeline = 4}, lowered, costs);
//
// Which device a world rank is on, the grid says (schedules/process_grid.h). A message of pipeline rank r in replica k
// goes from the device of world rank r * replicas + k to that of the same replica on the next rank. A data-parallel collective is a ring over its group (schedules/process_grid.h):
// inside a node each member passes to the next; a group with g members on its emptiest node forms g rings side by side,
// each through another member's NIC, with 1/g of the bytes. They claim g shares where they meet other traffic. Source:
// ring collectives over several NICs, NVIDIA/nccl src/graph (Apache-2.0, facts restated).

#include "schedules/cost_table.h"
#include "schedules/process_grid.h"
#include "schedules/schedule.h"
#include "simulator/network/topology/fabric.h"
#include "simulator/network/topology/network_spec.h"

namespace plumb { inline namespace simulator {

/// Returns the ring collectives of `devices` as one flow: shares for each byte that crosses a link of the ring. Devices
/// with equal device / devices_per_node are of one node. Empty for fewer than two devices.
Route ring_route(const Fabric& fabric, int devices_per_node, const std::vector<int>& devices);

/// Returns the bytes over each link of a ring of n ranks for each byte of the buffer: 2(n-1)/n for all-reduce, (n-1)/n
/// for all-gather, reduce-scatter and all-to-all, 1 for broadcast.
double ring_volume_ratio(CollectiveKind kind, int ranks);

/// Returns a network with all replicas of the pipeline, none folded. Messages and the collectives of the data group
/// (UNSHARD, REDUCE_GRAD) have routes; the collectives of other groups are inside the actions and share nothing. `grid`
/// is that of the weights: context is the replicas that share state, data the copies of such groups, whose sums are a
/// part of REDUCE_GRAD's time and share nothing. Throws SpecError if the grid has more ranks than the fabric has
/// devices or its pipeline degree is not the schedule's.
NetworkSpec place(const Fabric& fabric, int devices_per_node, const ProcessGrid& grid, const Schedule& lowered,
                  const CostTable& costs);

}}  // namespace plumb::simulator
