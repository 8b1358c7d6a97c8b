#include "planner/shard/mesh_sizes.h"

#include <algorithm>

namespace plumb { inline namespace planner {

std::vector<int> mesh_sizes(const ClusterSpec& cluster) {
  const int node = std::min(cluster.devices_per_node, cluster.devices);
  std::vector<int> sizes;
  for (int devices = 1; devices < node; devices *= 2) sizes.push_back(devices);
  for (int devices = node; devices <= cluster.devices; devices += node) sizes.push_back(devices);
  return sizes;
}

}}  // namespace plumb::planner
