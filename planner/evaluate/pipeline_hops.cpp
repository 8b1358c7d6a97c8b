#include "planner/evaluate/pipeline_hops.h"

namespace plumb { inline namespace planner {

std::vector<std::pair<int, int>> pipeline_hops(const Schedule& schedule) {
  const StageNeighbors neighbors = stage_neighbors(schedule);
  std::vector<std::pair<int, int>> hops;
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    const int next = neighbors.successor[stage];
    if (next < 0) continue;
    const int from = schedule.stages[stage].rank;
    const int to = schedule.stages[next].rank;
    if (from == to) continue;
    hops.emplace_back(from, to);
    hops.emplace_back(to, from);
  }
  return hops;
}

}}  // namespace plumb::planner
