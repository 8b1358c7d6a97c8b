#pragma once
// Makes a given order shorter for given costs: actions change places within their rank's list.

#include <cstdint>

#include "schedules/schedule.h"
#include "schedules/synthesis/order_costs.h"

namespace plumb { inline namespace schedules {

struct LocalSearch {
  int steps = 20'000;  ///< orders that are tried
  std::uint64_t seed = 1;
  int rank_limit = 0;  ///< activations that a rank may hold, from F to the last part of the backward; 0 for any number
  std::int64_t goal = 0;  ///< a span that is short enough, in the unit of the costs
};

/// Returns the longest span of any rank, from the start of its first action to the end of its last, with free channels.
/// Throws ScheduleError if the schedule deadlocks, or has other actions than F, B, I and W, slices or pairs.
std::int64_t longest_span(const Schedule& schedule, const OrderCosts& costs);

/// Returns the schedule with the shortest of the longest spans met by threshold accepting (Dueck & Scheuer 1990). Each
/// step moves one action of the critical path within its rank, and is kept if the span grows by no more than a
/// threshold that falls to zero. Deterministic for a seed; never longer than the order it started from. Throws as
/// longest_span does, and ScheduleError if the schedule holds more than `rank_limit` activations.
Schedule shorten_span(const Schedule& schedule, const OrderCosts& costs, const LocalSearch& search);

}}  // namespace plumb::schedules
