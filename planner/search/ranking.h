#pragma once
// One search, from the layouts that are open to the ranking. It takes up the layout whose known value is the least, as
// search/search.h says.
//
//   ranked_layouts(pricing, space, options, order, {.complete = false}).ranked.front()

#include <limits>
#include <optional>

#include "planner/price/pricing.h"
#include "planner/search/search.h"
#include "planner/spec/layout_space.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

struct RankingLimits {
  bool complete = true;  ///< false: layouts that cannot fit (search/memory_bound.h) are not looked at
  double most = std::numeric_limits<double>::infinity();  ///< no layout of a greater value is wanted
  bool has_answer = false;  ///< another search has found rows: one that is stopped without any need not go on
};

/// Returns the rows of that space alone, and what the search saw. Throws as search_layouts does.
SearchResult ranked_layouts(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                            const std::optional<Schedule>& order, const RankingLimits& limits);

}}  // namespace plumb::planner
