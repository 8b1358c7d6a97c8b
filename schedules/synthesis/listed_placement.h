#pragma once
// List schedules on any placement: how many micro-batches may be under way, and who goes first, are varied.
//
//   for (Schedule& order : listed_orders(question)) ...

#include <vector>

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns the orders of list_scheduler.h for many rules, as far as they end within the question's memory. A stage
/// lets forwards run ahead of backwards as many as a number of micro-batches that are under way at the first stage,
/// from one to all, by its share of the time from a forward to its gradient: so do those of a steady state. Forwards
/// of later stages go first or behind those of earlier ones, and weight gradients fill gaps with more or less
/// patience. Deterministic.
std::vector<Schedule> listed_orders(const OrderQuestion& question);

}}  // namespace plumb::schedules
