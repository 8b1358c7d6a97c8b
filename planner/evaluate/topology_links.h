#pragma once
// The price of messages on a network of the user's own (spec/topology_spec.h).
//
//   costs = with_topology_links(costs, topology, grid, lowered);

#include "schedules/cost_table.h"
#include "schedules/process_grid.h"
#include "schedules/schedule.h"
#include "simulator/network/topology/topology.h"

namespace plumb { inline namespace planner {

/// Returns the table with the topology's links between pipeline ranks that exchange messages. World rank w is device w,
/// so that replicas may go different ways: a link has the rate of the fastest replica (the slower ones are held back by
/// their own links, simulator/network/placement/place.h) and the latency of the longest way. Throws SpecError if the
/// grid has more ranks than the topology has devices, or if no links lead from a rank to one that it sends to.
CostTable with_topology_links(CostTable costs, const Topology& topology, const ProcessGrid& grid,
                              const Schedule& schedule);

}}  // namespace plumb::planner
