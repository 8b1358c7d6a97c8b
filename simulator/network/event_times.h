#pragma once
// What the event engine says: when each action of every replica starts and ends.

#include <cstdint>
#include <vector>

#include "simulator/engine.h"
#include "simulator/network/event_program.h"

namespace plumb { inline namespace simulator {

struct EventTimes {
  std::vector<SimTime> start;  ///< [replica * actions + action]
  std::vector<SimTime> end;    ///< SEND: delivery. RECV: delivery, or its issue if that is later.
  std::int64_t events = 0;     ///< ends and deliveries that the engine went through
};

/// The times of all actions, where only those that lead others, and the issues of receives, are known: the second of a
/// pair and the copies of a sum have the times of the first, a receive ends as its message is delivered.
EventTimes with_followers(EventTimes times, const EventProgram& program, int replicas);

/// The times of one replica; if asked for, with the cause of every start (that which came last, in the order of the
/// dependencies where several came together). What waited for other replicas has the last of its own replica's causes.
ActionTimes action_times_of(const EventProgram& program, const EventTimes& times, int replica, bool record_causes);

}}  // namespace plumb::simulator
