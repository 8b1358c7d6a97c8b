#include "schedules/dependencies/lanes.h"

#include <algorithm>
#include <numeric>

namespace plumb { inline namespace schedules {

std::vector<int> first_stages(const Schedule& schedule) {
  const std::vector<int> predecessor = stage_neighbors(schedule).predecessor;
  std::vector<int> by_part(predecessor.size());
  std::iota(by_part.begin(), by_part.end(), 0);
  std::ranges::stable_sort(by_part, {}, [&](int stage) { return schedule.stages[stage].model_part; });
  std::vector<int> first(predecessor.size());
  for (const int stage : by_part) first[stage] = predecessor[stage] < 0 ? stage : first[predecessor[stage]];
  return first;
}

}}  // namespace plumb::schedules
