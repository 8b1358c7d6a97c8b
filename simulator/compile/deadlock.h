#pragma once
// Makes the error of a schedule whose ranks wait for each other.

#include "schedules/error.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace simulator {

/// Returns the error of a schedule that does not run to its end. It names the cycle of waiting, action by action, with
/// ranks and positions.
ScheduleError deadlock_error(const Schedule& schedule, Sends sends);

}}  // namespace plumb::simulator
