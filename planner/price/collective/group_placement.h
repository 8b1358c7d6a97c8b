#pragma once
// The placement of a group's ranks: the number of nodes, and the ranks on each.

#include <compare>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/process_grid.h"

namespace plumb { inline namespace planner {

struct GroupPlacement {
  int ranks = 1;
  int nodes = 1;
  int ranks_per_node = 1;  ///< ranks on the node that has the fewest of them

  friend auto operator<=>(const GroupPlacement&, const GroupPlacement&) = default;  // NOLINT(modernize-use-nullptr)
};

/// `devices` are ascending.
GroupPlacement placement_of(const std::vector<int>& devices, int devices_per_node);

/// Returns the worst placed tensor, context or data group among the devices of one pipeline rank, which begin with
/// `first_device`: the group with the most nodes, then with the fewest ranks on a node.
GroupPlacement worst_placement(const ProcessGrid& grid, Group group, int first_device, int devices_per_node);

/// Returns the same of a pipeline rank whose devices do not lie in a row (ProcessGrid::together).
GroupPlacement worst_placement_apart(const ProcessGrid& grid, Group group, int pipeline_rank, int devices_per_node);

}}  // namespace plumb::planner
