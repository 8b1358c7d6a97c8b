#pragma once
// Does a schedule run to its end? Its compute order is played without a clock.

#include "schedules/dependencies/action_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// True if every compute action can run, its rank's list in order and its inputs ready, and every REDUCE_GRAD that
/// copies of a stage do together. Linear in the number of actions. Messages are not looked at: placed as validate
/// demands they cannot close a cycle (schedules/passes/passes.h).
bool runs_to_end(const Schedule& schedule);

/// The same where the schedule's table is at hand.
bool runs_to_end(const Schedule& schedule, const ActionTable& table);

}}  // namespace plumb::schedules
