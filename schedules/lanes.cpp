#include "schedules/lanes.h"

namespace plumb { inline namespace schedules {

std::vector<int> first_stages(const Schedule& schedule) {
  const std::vector<int> predecessor = stage_neighbors(schedule).predecessor;
  std::vector<int> first(predecessor.size());
  for (std::size_t s = 0; s < first.size(); ++s) {
    first[s] = static_cast<int>(s);
    while (predecessor[first[s]] >= 0) first[s] = predecessor[first[s]];
  }
  return first;
}

}}  // namespace plumb::schedules
