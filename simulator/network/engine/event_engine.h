#pragma once
// The event-driven engine computes when each action of every replica starts and ends where transfers share links.
//
// The rules are those of docs/design.md, as schedules/dependencies/dependencies.h has them: an action starts when all
// events that it waits for have happened. A message or collective with a route is a flow, whose rate changes with the
// other flows on its links. Where nothing shares, the times are those of the compiled engine
// (simulator/engine/engine.h), to the picosecond.

#include "simulator/network/engine/event_draws.h"
#include "simulator/network/engine/event_program.h"
#include "simulator/network/engine/event_times.h"
#include "simulator/network/flow/derivative_tape.h"
#include "simulator/network/topology/network_spec.h"

namespace plumb { inline namespace simulator {

/// Options of an engine's run. Tape and draws must outlive it, and at most one of them may be given.
struct EventOptions {
  /// Records how each moment depends on the numbers of simulator/network/engine/event_numbers.h.
  DerivativeTape* tape = nullptr;
  const EventDraws* draws = nullptr;  ///< random factors of all durations
  bool record_meetings = false;       ///< fills EventTimes::meetings
};

/// Returns the times. `program` must be made from `lowered` and `network`. Throws ScheduleError if the schedule
/// deadlocks.
EventTimes event_times(const Schedule& lowered, const EventProgram& program, const NetworkSpec& network, Sends sends,
                       const EventOptions& options = {});

}}  // namespace plumb::simulator
