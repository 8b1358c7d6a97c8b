#include "planner/evaluate/pipeline_hops.h"

namespace plumb { inline namespace planner {

namespace {

/// Calls visit(stage, next) for each boundary between stages on different ranks, in the order of the stages.
template <class Visit>
void for_each_boundary(const Schedule& schedule, const Visit& visit) {
  const StageNeighbors neighbors = stage_neighbors(schedule);
  for (int stage = 0; stage < static_cast<int>(schedule.stages.size()); ++stage) {
    const int next = neighbors.successor[stage];
    if (next >= 0 && schedule.stages[stage].rank != schedule.stages[next].rank) visit(stage, next);
  }
}

}  // namespace

std::vector<std::pair<int, int>> pipeline_hops(const Schedule& schedule) {
  std::vector<std::pair<int, int>> hops;
  for_each_boundary(schedule, [&](int stage, int next) {
    const int from = schedule.stages[stage].rank;
    const int to = schedule.stages[next].rank;
    hops.emplace_back(from, to);
    hops.emplace_back(to, from);
  });
  return hops;
}

std::vector<int> hops_to(const Schedule& schedule) {
  std::vector<int> hops(schedule.stages.size(), -1);
  int before = 0;
  for_each_boundary(schedule, [&](int, int next) {
    hops[next] = before;
    before += 2;
  });
  return hops;
}

}}  // namespace plumb::planner
