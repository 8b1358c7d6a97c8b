#pragma once
// The event-driven engine: when each action of every replica starts and ends where transfers share links.
//
// The rules are docs/design.md as schedules/dependencies/dependencies.h has them: an action starts when all that it waits for
// has happened. A message or collective with a route is a flow; its rate changes with whatever shares its links. Where
// nothing shares, the times are those of the compiled engine (simulator/engine/engine.h), to the picosecond.

#include "simulator/network/engine/event_draws.h"
#include "simulator/network/engine/event_program.h"
#include "simulator/network/engine/event_times.h"
#include "simulator/network/flow/derivative_tape.h"
#include "simulator/network/topology/network_spec.h"

namespace plumb { inline namespace simulator {

/// An engine's run may have these besides; tape and draws outlive it, and only one of them is given.
struct EventOptions {
  DerivativeTape* tape = nullptr;     ///< records how each moment depends on the numbers of network/event_numbers.h
  const EventDraws* draws = nullptr;  ///< random factors of all durations
  bool record_meetings = false;       ///< EventTimes::meetings
};

/// `program` is made of `lowered` and `network`. Throws ScheduleError if the schedule deadlocks.
EventTimes event_times(const Schedule& lowered, const EventProgram& program, const NetworkSpec& network, Sends sends,
                       const EventOptions& options = {});

}}  // namespace plumb::simulator
