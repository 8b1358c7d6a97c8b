#include "simulator/network/engine/event_times.h"

#include <algorithm>

namespace plumb { inline namespace simulator {

EventTimes with_followers(EventTimes times, const EventProgram& program, int replicas) {
  for (std::int32_t a = 0; a < program.actions; ++a) {
    const bool follows = program.kind[a] == EventKind::kFollower;
    const std::int32_t receive = program.arrival[a];
    if (!follows && receive < 0) continue;
    for (int k = 0; k < replicas; ++k) {
      const std::size_t base = static_cast<std::size_t>(k) * program.actions;
      if (follows) {
        times.start[base + a] = times.start[base + program.lead[a]];
        times.end[base + a] = times.end[base + program.lead[a]];
      }
      if (receive >= 0) times.end[base + receive] = std::max(times.start[base + receive], times.end[base + a]);
    }
  }
  return times;
}

ActionTimes action_times_of(const EventProgram& program, const EventTimes& times, int replica) {
  const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(replica) * program.actions;
  return {.start = {times.start.begin() + first, times.start.begin() + first + program.actions},
          .end = {times.end.begin() + first, times.end.begin() + first + program.actions}};
}

}}  // namespace plumb::simulator
