#pragma once
// Makes a given order shorter for given costs: actions change places within their rank's list.

#include <cstdint>
#include <functional>

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct LocalSearch {
  int steps = 20'000;  ///< orders that are tried
  std::uint64_t seed = 1;
  std::int64_t goal = 0;  ///< a time that is short enough, in the unit of the costs
  std::function<bool()>
      is_stopped;  ///< asked now and then, and ends the search early where it gives true; may be empty
};

/// Returns the time of the question's objective that an order takes with free channels. Throws ScheduleError
/// if the schedule deadlocks, or has other actions than F, B, I and W, or other pairs than those of a forward with a
/// backward behind it.
std::int64_t order_time(const Schedule& schedule, const OrderQuestion& question);

/// Returns the schedule of the shortest time met by threshold accepting (Dueck & Scheuer 1990). Each step
/// moves one action of the critical path within its rank, or joins it with a near one to an overlapped pair, where the
/// costs have pairs that take less time, or takes a pair apart. It is kept if the time grows by no more than a
/// threshold that falls to zero. Deterministic for a seed; never longer than the order it started from.
/// Throws as order_time does, and ScheduleError if the schedule needs more than the question's memory.
Schedule shorten_order(const Schedule& schedule, const OrderQuestion& question, const LocalSearch& search);

}}  // namespace plumb::schedules
