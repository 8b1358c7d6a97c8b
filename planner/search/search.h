#pragma once
// The best layouts of a model on a cluster where each transfer has its links to itself. search/best_layouts.h ranks
// them on the cluster's shared links.
//
//   Pricing pricing(model, cluster, training);
//   SearchResult found = search_layouts(pricing, parse_layout("tp=2"), {.keep = 5});
//   if (found.ranked.empty()) say(found.infeasible);
//
// Layouts are taken in the order of a time they cannot beat (search/bounds.h). Each is dropped if it does not fit, and
// simulated otherwise; the search ends when no bound left can beat the layouts kept. A layout that it drops is never
// among the best. Equals rank in the order of their enumeration, the simplest first.
//
// Every layout is priced for its bound, of which only the number is kept: the prices of all would take gigabytes. A
// layout that is looked at is priced once, and its Evaluation keeps these prices.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/search/enumerate.h"

namespace plumb { inline namespace planner {

struct SearchOptions {
  int keep = 10;         ///< layouts ranked
  bool explain = false;  ///< list every layout that lost, with the nearest change that fits for those that do not fit
};

struct SearchCounts {
  std::int64_t enumerated = 0;  ///< layouts without conflict
  std::int64_t conflicts = 0;
  std::int64_t too_large = 0;  ///< did not fit, of those that were looked at
  std::int64_t simulated = 0;
  std::int64_t outrun = 0;  ///< their bound was no better than the layouts kept
};

struct SearchResult {
  std::vector<Evaluation> ranked;     ///< by step time; empty: there is no feasible layout
  std::vector<Rejection> rejections;  ///< conflicts always; all others with `explain`
  SearchCounts counts;
  std::string infeasible;  ///< where nothing is feasible: by how much, and the nearest change that helps
};

/// Throws SpecError or ScheduleError for the user's mistakes (see make_schedule); a layout that cannot exist or does
/// not fit is a rejection. Where nothing fits, the request leaves offload open and the cluster names its host, the
/// search is made again with the optimizer offloaded, then with activations too.
SearchResult search_layouts(Pricing& pricing, const LayoutRequest& request, const SearchOptions& options = {});

}}  // namespace plumb::planner
