#pragma once
// Nodes that stand by for those under repair.

namespace plumb { inline namespace planner {

/// Returns the fewest spare nodes with which, at a moment, no node is missing with that probability. `mean_repaired` is
/// the mean number of nodes under repair; their number has a Poisson distribution, whatever that of repair times is
/// (M/G/infinity; Palm 1943). Needs 0 <= probability < 1.
int spare_nodes(double mean_repaired, double probability);

}}  // namespace plumb::planner
