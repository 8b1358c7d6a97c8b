#pragma once
// The sum of the two gradients of a tied table, once a step.

#include <vector>

#include "planner/price/pricing.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace planner {

/// Returns the all-reduce between the pipeline ranks of the table's two uses; nothing where the model ties none, or both
/// uses are on one rank. Graphs have graph_tied_reduction() (evaluate/graph_stages.h).
std::vector<Segment> tied_reduction(const Pricing& pricing, const Layout& layout, int first_rank, int last_rank);

}}  // namespace plumb::planner
