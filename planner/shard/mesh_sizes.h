#pragma once
// The numbers of devices that a stage may have.

#include <vector>

#include "planner/spec/cluster_spec.h"

namespace plumb { inline namespace planner {

/// Returns powers of two within a node, and whole nodes, ascending.
std::vector<int> mesh_sizes(const ClusterSpec& cluster);

}}  // namespace plumb::planner
