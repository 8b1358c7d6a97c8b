#pragma once
// The event-driven engine: when each action of every replica starts and ends where transfers share links.
//
// The rules are DESIGN.md section 3 as schedules/dependencies.h has them: an action starts when all that it waits for
// has happened. A message or collective with a route is a flow; its rate changes with whatever shares its links. Where
// nothing shares, the times are those of the compiled engine (simulator/engine.h), to the picosecond.

#include <cstdint>
#include <vector>

#include "simulator/network/event_program.h"
#include "simulator/network/network_spec.h"

namespace plumb {

struct EventTimes {
  std::vector<SimTime> start;  ///< [replica * actions + action]
  std::vector<SimTime> end;    ///< SEND: delivery. RECV: delivery, or its issue if that is later.
  std::int64_t events = 0;     ///< ends and deliveries that the engine went through
};

/// `program` is made of `lowered` and `network`. Throws ScheduleError if the schedule deadlocks.
EventTimes event_times(const Schedule& lowered, const EventProgram& program, const NetworkSpec& network, Sends sends);

}  // namespace plumb
