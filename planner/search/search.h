#pragma once
// The best layouts of a model on a cluster whose links are shared, in schedules of the catalogue or in one of the
// user's own.
//
//   Pricing pricing(model, cluster, training);
//   SearchResult found = search_layouts(pricing, parse_layout("tp=2"), {.keep = 5});
//   if (found.ranked.empty()) say(found.infeasible);
//
// The search always takes up the layout whose known time is the least, and learns more of it (search/candidates.h). A
// layout whose step on shared links is the least that is known of any is the best one left. Only that step says what a
// layout takes and whether it fits, with the stack's headroom of memory free. Equals rank in the order of their
// enumeration, the simplest first.
//
// Layouts of the same degrees and micro-batch are a family. A row of the ranking is the best of its family. Others of
// the family that take nearly the same are its variants, and are not simulated on shared links.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/search/layout_conflict.h"
#include "planner/search/other_values.h"
#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

/// Share of a step by which a variant of a layout is longer at most.
inline constexpr double kNearlyTheSame = 0.02;

struct SearchOptions {
  int keep = 10;         ///< families ranked
  bool by_key = false;   ///< find the best layout with each other value of each key
  bool explain = false;  ///< list every layout that lost, with the nearest change that fits for those that do not fit
};

struct SearchCounts {
  std::int64_t enumerated = 0;  ///< layouts without conflict
  std::int64_t conflicts = 0;
  std::int64_t priced = 0;     ///< whose stages were priced; the work of the others is enough to lose
  std::int64_t too_large = 0;  ///< did not fit, of those that were looked at
  std::int64_t simulated = 0;  ///< on shared links, and fit
  std::int64_t outrun = 0;     ///< could not be a row by a bound

  friend bool operator==(const SearchCounts&, const SearchCounts&) = default;
};

struct SearchResult {
  std::vector<Evaluation> ranked;  ///< the best of each family; empty: there is no feasible layout
  /// [ranked] others of the family whose step, with links of their own, is at most kNearlyTheSame longer.
  std::vector<std::vector<Layout>> variants;
  std::vector<OtherValue> other_values;  ///< by key and value, with `by_key`
  std::vector<Rejection> conflicts;      ///< what cannot exist, or the framework does not run
  std::vector<Rejection> losers;         ///< all other layouts that are no rows, with `explain`
  SearchCounts counts;
  std::string infeasible;  ///< where nothing is feasible: by how much, and the nearest change that helps
};

/// Returns the keys that layouts of a family share: dp, tp, pp, cp, ep, etp and mbs.
LayoutRequest family_of(const Layout& layout);

/// With an `order` only layouts of its ranks, stages and micro-batches count. Throws SpecError or ScheduleError for the
/// user's mistakes (see make_schedule), also if the request has another pp or v than the order; a layout that cannot
/// exist or does not fit is a rejection. Where nothing fits, the request leaves offload open and the cluster names its
/// host, the search is made again with the optimizer offloaded, then with activations too.
SearchResult search_layouts(Pricing& pricing, const LayoutRequest& request, const SearchOptions& options = {},
                            const std::optional<Schedule>& order = std::nullopt);

}}  // namespace plumb::planner
