#pragma once
// Makes overlapped pairs of an order's neighbours where the costs have pairs that take less time than their two actions.

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns the order with pairs of a forward and a backward that stand next to each other: all that take less time
/// together, if the order takes less with all of them; otherwise one after the other from the front, each if the order
/// takes no longer with it. An order of more than `most_actions` has all or none. Pairs that it has are kept. Throws as
/// order_time() does.
Schedule paired_order(Schedule order, const OrderQuestion& question, std::size_t most_actions = 2000);

}}  // namespace plumb::schedules
