#pragma once
// Tells whether a schedule runs to its end: its compute order is played without a clock.

#include "schedules/dependencies/action_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// True if every compute action can run, with its rank's list in order and its inputs ready, and every REDUCE_GRAD that
/// copies of a stage do together. The time is linear in the number of actions. Messages are not looked at: where they
/// stand as validate demands, they cannot close a cycle (schedules/passes/passes.h). Where weights travel, the whole
/// graph of actions is searched for one.
bool runs_to_end(const Schedule& schedule);

/// This form is for a caller that already has the schedule's table.
bool runs_to_end(const Schedule& schedule, const ActionTable& table);

}}  // namespace plumb::schedules
