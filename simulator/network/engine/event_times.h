#pragma once
// What the event engine says: when each action of every replica starts and ends.

#include <cstdint>
#include <vector>

#include "simulator/engine/engine.h"
#include "simulator/network/engine/event_program.h"

namespace plumb { inline namespace simulator {

/// A collective inside an action began later than this instance had come to it, as it waited for others.
struct Meeting {
  std::int32_t waiting = 0;  ///< instance
  std::int32_t last = 0;     ///< instance that came last
  SimTime moment{0};
};

struct EventTimes {
  std::vector<SimTime> start;     ///< [replica * actions + action]
  std::vector<SimTime> end;       ///< SEND: delivery. RECV: delivery, or its issue if that is later.
  std::int64_t events = 0;        ///< ends and deliveries that the engine went through
  std::vector<Meeting> meetings;  ///< only if asked for (EventOptions)
};

/// The times of all actions, where only those that lead others, and the issues of receives, are known: the second of a
/// pair and the copies of a sum have the times of the first, a receive ends as its message is delivered.
EventTimes with_followers(EventTimes times, const EventProgram& program, int replicas);

/// The times of one replica, without causes (network/event_path.h finds those).
ActionTimes action_times_of(const EventProgram& program, const EventTimes& times, int replica);

}}  // namespace plumb::simulator
