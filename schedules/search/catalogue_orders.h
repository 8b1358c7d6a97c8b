#pragma once
// The orders that a search knows to begin with.

#include <vector>

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns an order of F, B, I and W for the question's frame. Overlapped pairs of a forward and a backward stay, with the
/// forward named first, where the question's costs have them take less time than the two; others come apart. Where
/// the question splits backwards, each other B is an I with its W behind it: neither takes longer by it, or holds more.
/// Returns an order without lists where the schedule has other actions or more slices, or splits backwards that the
/// question keeps whole.
Schedule as_searched(Schedule schedule, const OrderQuestion& question);

/// Returns as_searched(). Throws ScheduleError if the schedule has more than orders have.
Schedule searchable_order(const Schedule& schedule, const OrderQuestion& question);

/// Returns the question of a schedule's placement, micro-batches and slices, with whole backwards if it splits none, still
/// without costs and memory.
OrderQuestion placed_question(const Schedule& schedule, Objective objective);

/// Returns the orders of the catalogue (as_searched) that have the question's placement and slices and keep to its
/// memory, those with pairs also without them. Those made for costs are made for equal ones, but for zb-auto, which a search makes itself.
std::vector<Schedule> catalogue_orders(const OrderQuestion& question);

/// Returns the order in which each micro-batch runs through all stages and back before the next one starts.
/// None needs less memory.
Schedule serial_order(const OrderQuestion& question);

}}  // namespace plumb::schedules
