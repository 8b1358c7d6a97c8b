#pragma once
// The best layouts of a model on a cluster whose links are shared, in a schedule of the catalogue or of the user's own.
//
//   SearchResult found = best_layouts(pricing, parse_layout("tp=2"), {.keep = 5}, std::nullopt);
//
// The search gives every transfer its links to itself (search/search.h). The layouts that it ranks are then evaluated
// as `plumb simulate` does, with messages and collectives on the cluster's links, and ranked by that time.

#include <optional>

#include "planner/search/plan.h"
#include "planner/search/search.h"

namespace plumb { inline namespace planner {

/// Returns the best layouts, ranked. With an `order` only layouts of its ranks, stages and micro-batches count. Throws
/// as search_layouts does, and SpecError if the request has another pp or v than the order.
SearchResult best_layouts(Pricing& pricing, const LayoutRequest& request, const SearchOptions& options,
                          const std::optional<Schedule>& order);

/// The plan of one of these layouts: its split is fixed, and it promises the evaluation's prediction.
Plan plan_of(const Pricing& pricing, const Evaluation& evaluation, const std::optional<Schedule>& order);

}}  // namespace plumb::planner
