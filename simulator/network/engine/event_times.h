#pragma once
// The answer of the event engine: when each action of every replica starts and ends.

#include <cstdint>
#include <vector>

#include "simulator/engine/engine.h"
#include "simulator/network/engine/event_program.h"

namespace plumb { inline namespace simulator {

/// A collective inside an action that began later than this instance had come to it, as it waited for others.
struct Meeting {
  std::int32_t waiting = 0;  ///< instance
  std::int32_t last = 0;     ///< instance that came last
  SimTime moment{0};
};

struct EventTimes {
  std::vector<SimTime> start;     ///< [replica * actions + action]
  std::vector<SimTime> end;       ///< of a SEND, its delivery; of a RECV, the delivery or its issue, whichever is later
  std::int64_t events = 0;        ///< ends and deliveries that the engine went through
  std::vector<Meeting> meetings;  ///< only if asked for (EventOptions)
};

/// Returns the times of all actions from those of the actions that lead others and the issues of receives: the second
/// of a pair and the copies of a sum have the times of the first, and a receive ends as its message is delivered.
EventTimes with_followers(EventTimes times, const EventProgram& program, int replicas);

/// Returns the times of one replica, without causes (simulator/network/engine/event_path.h finds those).
ActionTimes action_times_of(const EventProgram& program, const EventTimes& times, int replica);

}}  // namespace plumb::simulator
