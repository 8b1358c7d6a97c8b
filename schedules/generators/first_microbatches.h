#pragma once
// Serves schedules whose steps are counted for many micro-batches: they are made for as many as they need, then cut to
// those there are.

#include <vector>

#include "schedules/action.h"

namespace plumb { inline namespace schedules {

/// Returns the actions of micro-batches 0 to count-1, in their order. An action that loses its overlapped partner
/// stands alone. A list that runs to its end still does: every micro-batch depends on itself only, and the order of the
/// others is kept.
std::vector<Action> first_microbatches(const std::vector<Action>& actions, int count);

/// Returns the actions of the micro-batches whose numbers[micro-batch] is 0 or more, which becomes their number; -1
/// leaves one out.
std::vector<Action> renumbered_microbatches(const std::vector<Action>& actions, const std::vector<int>& numbers);

}}  // namespace plumb::schedules
