#pragma once
// Orders that are good at equal costs, made better for given ones.

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/synthesis/order_graph.h"

namespace plumb { inline namespace schedules {

/// The schedule of the shortest span found from several candidates of the same actions: searches with floating weight
/// gradients (order_search.h), first from the best candidates and then from the best order found, and a local search
/// (local_search.h) of the whole order. No longer than the shortest candidate; three hundred million timed actions, a
/// few seconds (an order of more than a hundred thousand actions is too long for that: the shortest candidate). A rank
/// holds at most `rank_limit` activations from F to the last part of the backward (0: any number); candidates that hold
/// more are left out. It ends at a span of `goal` or at the work of the busiest rank, which no order beats.
/// Deterministic. Throws ScheduleError if no candidate is left.
Schedule fit_to_costs(const std::vector<Schedule>& candidates, const OrderCosts& costs, int rank_limit,
                      std::int64_t goal = 0);

/// The work of the busiest rank: no order of the schedule's actions has a shorter span.
std::int64_t most_work(const Schedule& schedule, const OrderCosts& costs);

}}  // namespace plumb::schedules
