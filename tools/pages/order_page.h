#pragma once
// `plumb schedule search --html`: an order that was found, as a page.

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/search/search_schedule.h"
#include "simulator/simulate.h"
#include "tools/pages/page.h"

namespace plumb { inline namespace tools {

/// The best time and the bound whenever the first fell, in the order of the search.
struct SearchHistory {
  std::vector<std::int64_t> times;   ///< in the unit of SimTime
  std::vector<std::int64_t> bounds;  ///< [times]
};

/// Returns the page: the verdict and what binds, the course of the search, and the order as a timeline. `simulation` is
/// the order's, with a timeline; `verdict` and `certificate` are what the terminal says.
Page order_page(const FoundSchedule& found, const Simulation& simulation, const SearchHistory& history,
                const std::string& verdict, const std::string& certificate);

}}  // namespace plumb::tools
