#pragma once
// Takes orders that are good at equal costs and makes them better for given ones.

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/synthesis/order_graph.h"

namespace plumb { inline namespace schedules {

/// Returns the schedule of the shortest span found from several candidates of the same actions. It runs searches with
/// floating weight gradients (order_search.h), first from the best candidates and then from the best order found, and a
/// local search (local_search.h) of the whole order. The result is no longer than the shortest candidate. The effort is
/// three hundred million timed actions, a few seconds; an order of more than a hundred thousand actions is too long for
/// that, and gives the shortest candidate. A rank holds at most `rank_limit` activations from F to the last part of the
/// backward (0 for any number); candidates that hold more are left out. The search ends at a span of `goal` or at the
/// work of the busiest rank, which no order beats. Deterministic. Throws ScheduleError if no candidate is left.
Schedule fit_to_costs(const std::vector<Schedule>& candidates, const OrderCosts& costs, int rank_limit,
                      std::int64_t goal = 0);

/// Returns the work of the busiest rank: no order of the schedule's actions has a shorter span.
std::int64_t most_work(const Schedule& schedule, const OrderCosts& costs);

}}  // namespace plumb::schedules
