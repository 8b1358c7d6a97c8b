#pragma once
// Takes orders that are good at some costs and makes them better for given ones.

#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// The effort that a search may spend, and when it may end.
struct FitEffort {
  double timed_actions = 3e8;        ///< actions timed over all orders; the default takes seconds
  std::int64_t goal = 0;             ///< a time that is short enough, a lower bound for instance
  std::function<bool()> is_stopped;  ///< ends the search early where it gives true; may be empty
};

struct FittedOrder {
  Schedule schedule;
  std::int64_t time = 0;  ///< of the question's objective
};

/// Returns the order of the shortest time found from several candidates for the question's frame. It runs
/// searches with floating weight gradients (order_search.h), first from the best candidates and then from the
/// best order found, and a local search (local_search.h) of the whole order, which alone knows pairs. The result is no longer than the
/// shortest candidate. An order that is too long for the effort gives the shortest candidate. Candidates that
/// need more than the question's memory are left out. Deterministic unless it is stopped. Throws
/// ScheduleError if no candidate is left.
FittedOrder fit_to_costs(const std::vector<Schedule>& candidates, const OrderQuestion& question,
                         const FitEffort& effort = {});

}}  // namespace plumb::schedules
