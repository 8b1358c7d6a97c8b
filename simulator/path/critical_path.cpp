#include "simulator/path/critical_path.h"

#include <algorithm>

namespace plumb { inline namespace simulator {

std::vector<SimTime> contributions(const std::vector<CriticalStep>& path) {
  std::vector<SimTime> added;
  for (std::size_t i = 0; i < path.size(); ++i)
    added.push_back((i + 1 < path.size() ? path[i + 1].start : path[i].end) - path[i].start);
  return added;
}

std::int32_t last_to_end(const Schedule& schedule, const std::vector<SimTime>& ends) {
  std::int32_t last = 0;
  SimTime latest = SimTime::min();
  std::int32_t id = 0;
  while (id < static_cast<std::int32_t>(ends.size())) {
    for (const auto& actions : schedule.ranks) {
      for (const Action& action : actions) {
        const bool receives = is_recv(action.op) || receives_weights(action.op);
        if (!receives && ends[id] > latest) {
          latest = ends[id];
          last = id;
        }
        ++id;
      }
    }
  }
  return last;
}

std::vector<CriticalStep> critical_path(const Schedule& schedule, const ActionTimes& times) {
  if (times.end.empty()) return {};
  const ActionIds ids = action_ids(schedule);
  std::vector<CriticalStep> path;
  std::int32_t id = last_to_end(schedule, times.end);
  while (id != ActionTable::kNone) {
    const ActionPlace place = place_of(ids, id);
    path.push_back({.rank = place.rank,
                    .position = place.position,
                    .action = schedule.ranks[place.rank][place.position],
                    .start = times.start[id],
                    .end = times.end[id],
                    .reason = times.causes[id].reason});
    id = times.causes[id].action;
  }
  std::ranges::reverse(path);
  return path;
}

}}  // namespace plumb::simulator
