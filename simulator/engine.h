#pragma once
// The engine: when each action of a lowered schedule starts and ends.
//
// One cursor a rank walks its list; a compute action whose input from another rank is not there yet parks the rank
// until that transfer's time is known. Every time is a maximum of earlier times plus a cost, and channels serve in list
// order, so no result depends on the order in which ranks are visited: no clock, no event queue.
// simulator/longest_path.h computes the same starts from the action graph and is its reference.

#include <cstdint>
#include <vector>

#include "schedules/action_table.h"
#include "schedules/dependencies.h"
#include "schedules/schedule.h"
#include "simulator/action_costs.h"

namespace plumb {

/// Why an action did not start earlier.
struct Cause {
  std::int32_t action = ActionTable::kNone;  ///< whose time it is; kNone: it started at 0
  Reason reason = Reason::kIssue;
};

/// By action id (schedules/dependencies.h).
struct ActionTimes {
  std::vector<SimTime> start;
  std::vector<SimTime> end;   ///< SEND: delivery. RECV: delivery, or its issue if that is later.
  std::vector<Cause> causes;  ///< empty unless asked for
};

/// Throws ScheduleError if the schedule deadlocks (the cycle is named action by action) or lacks a message that an
/// action waits for; SpecError if an action has no cost.
ActionTimes action_times(const Schedule& lowered, const ActionTable& table, const ActionCosts& costs, Sends sends,
                         bool record_causes);

}  // namespace plumb
