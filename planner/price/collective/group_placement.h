#pragma once
// Where the ranks of one group sit: how many nodes, how many ranks on each.

#include <vector>

#include "schedules/cost_table.h"
#include "schedules/process_grid.h"

namespace plumb { inline namespace planner {

struct GroupPlacement {
  int ranks = 1;
  int nodes = 1;
  int ranks_per_node = 1;  ///< on the node that has fewest of them

  friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};

GroupPlacement placement_of(const std::vector<int>& world_ranks, int devices_per_node);

/// The worst placed tensor, context or data group among the devices of one pipeline rank: most nodes, then fewest ranks
/// on a node.
GroupPlacement worst_placement(const ProcessGrid& grid, Group group, int pipeline_rank, int devices_per_node);

}}  // namespace plumb::planner
