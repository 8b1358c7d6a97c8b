#pragma once
// The best layouts of a model on a cluster whose links are shared, in schedules of the catalogue or in one of the
// user's own.
//
//   Pricing pricing(model, cluster, training);
//   SearchResult found = search_layouts(pricing, parse_layout_space("tp=2|4"), {.keep = 5});
//   if (found.ranked.empty()) say(found.infeasible);
//
// The search always takes up the layout whose known value is the least, and learns more of it (search/candidates.h). A
// layout whose step on shared links has the least value that is known of any is the best one left. Only that step says what a
// layout takes and whether it fits, with the stack's headroom of memory free. Equals rank in the order of the tree
// (search/layout_tree.h), the simplest first.
//
// The usual space is searched first where the space is wide. What is worse than its rows is dropped as soon as that is
// known, so that little of the space is ever held.
//
// A search that is stopped ranks the best that it has found, and says how far they may be from the best there are.
//
// Steps of learning are taken in batches, which grow with the search. The steps on shared links, which are the dearest,
// are those alone that any search takes: as many families as rows are missing, the least values first.
//
// Layouts of the same degrees and micro-batch are a family. A row of the ranking is the best of its family. Others of
// the family that take nearly the same are its variants, and are not simulated on shared links.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/search/layout_conflict.h"
#include "planner/search/objective.h"
#include "planner/search/other_values.h"
#include "planner/spec/layout.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

/// Share of its value by which a variant of a layout is above it at most.
inline constexpr double kNearlyTheSame = 0.02;

/// The state of a search on its way.
struct SearchProgress {
  double least = 0;                  ///< a value below which no layout that is no row can be
  const Evaluation* best = nullptr;  ///< of the least value so far; null: no layout was evaluated yet
  double best_value = 0;
};

struct SearchOptions {
  SearchObjective objective;  ///< what is made least
  int threads = 0;            ///< that search side by side, with one answer; 0: one for each core
  int keep = 10;              ///< families ranked
  double below = std::numeric_limits<double>::infinity();  ///< only layouts of a lower value are ranked
  /// Rank, in place of the best of `keep` families, each layout that no other beats in both value and peak memory.
  bool memory_front = false;
  bool advise = true;    ///< say what would help where nothing is feasible
  bool by_key = false;   ///< find the best layout with each other value of each key, by a search for each
  bool explain = false;  ///< list every layout that lost, with the nearest change that fits for those that do not fit
  bool list_learned = false;          ///< list the layouts whose step and memory were learned
  std::int64_t most_evaluations = 0;  ///< simulations after which the search stops; 0: it ends by itself
  /// Asked now and then; true: the search stops.
  std::function<bool(const SearchProgress&)> stop = [](const SearchProgress&) { return false; };
};

struct SearchCounts {
  std::int64_t families = 0;                ///< degrees with a micro-batch, bounded
  std::int64_t opened = 0;                  ///< families that were opened; no layout of the others can be a row
  std::int64_t cores_too_large = 0;         ///< kinds of schedule and passes in these that fit in no layout
  std::int64_t conflicts = 0;               ///< found on the way
  std::int64_t evaluations = 0;             ///< simulations, with links of a layout's own or shared ones
  std::int64_t evaluations_until_stop = 0;  ///< of a search that was stopped
  std::int64_t priced = 0;                  ///< layouts whose stages were priced
  std::int64_t too_large = 0;               ///< of these, did not fit
  std::int64_t simulated = 0;               ///< on shared links, and fit
  std::int64_t outrun = 0;                  ///< could not be a row by a bound

  SearchCounts& operator+=(const SearchCounts& other);
  friend bool operator==(const SearchCounts&, const SearchCounts&) = default;
};

/// A layout whose step and memory the search learned.
struct LearnedLayout {
  Layout layout;
  SimTime time{0};               ///< of the step
  std::int64_t peak_bytes = 0;   ///< of its fullest rank
  bool on_shared_links = false;  ///< false: each transfer had its links to itself
  bool fits = true;              ///< false: it is too large, and its time is a bound
};

struct SearchResult {
  std::vector<Evaluation> ranked;  ///< the best of each family; empty: there is no feasible layout
  std::vector<double> values;      ///< [ranked] by the objective
  /// [ranked] others of the family whose value, with links of their own, is at most kNearlyTheSame above.
  std::vector<std::vector<Layout>> variants;
  std::vector<OtherValue> other_values;  ///< by key and value, with `by_key`
  std::vector<Rejection> conflicts;      ///< what cannot exist, or the framework does not run
  std::vector<Rejection> losers;         ///< all other layouts that are no rows, with `explain`
  std::vector<LearnedLayout> learned;    ///< in the order of the tree, with `list_learned`
  SearchCounts counts;
  /// A value below which no layout that is no row can be, where the search was stopped.
  std::optional<double> stopped_at;
  bool limited = false;            ///< the next layout is not below SearchOptions::below
  std::string infeasible;          ///< where nothing is feasible: by how much, and the nearest change that helps
  std::int64_t missing_bytes = 0;  ///< that the closest layout lacks where none fits, as far as layouts were priced
};

/// With an `order` only layouts of its ranks, stages and micro-batches count. Throws SpecError or ScheduleError for the
/// user's mistakes (see make_schedule), also if the space has another pp or v than the order; a layout that cannot
/// exist or does not fit is a rejection. Where nothing fits and the space leaves offload open, the search is made again
/// with activations and the optimizer's state in the hosts, if the cluster and the framework have that. Meshes of different shape are
/// evaluated where the space names them (search/named_meshes.h), and never chosen.
SearchResult search_layouts(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options = {},
                            const std::optional<Schedule>& order = std::nullopt);

}}  // namespace plumb::planner
