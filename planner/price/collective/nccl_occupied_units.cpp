#include "planner/price/collective/nccl_occupied_units.h"

#include <algorithm>

namespace plumb { inline namespace planner {

int occupied_units(const NcclMachine& machine, const GroupPlacement& group) {
  constexpr int kMostChannels = 32;
  if (group.ranks <= 1) return 0;
  return std::min(kMostChannels, 2 * nccl_graphs(machine, group).ring.count);
}

}}  // namespace plumb::planner
