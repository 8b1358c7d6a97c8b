#pragma once
// The best layouts of a model on a cluster.
//
//   SearchResult found = search_layouts(model, cluster, training, parse_layout("tp=2"), {.keep = 5});
//   if (found.ranked.empty()) say(found.infeasible);
//
// Layouts are taken in the order of a time they cannot beat (search/bounds.h). Each is dropped if it does not fit, and
// simulated otherwise; the search ends when no bound left can beat the layouts kept. What it drops is never among the
// best. Deterministic: equals rank in the order of their enumeration, the simplest first.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/search/bounds.h"
#include "planner/search/enumerate.h"
#include "planner/search/predict.h"

namespace plumb { inline namespace planner {

struct SearchOptions {
  int keep = 10;         ///< layouts ranked
  bool explain = false;  ///< list every layout that lost, with the nearest change that fits for those that do not fit
};

struct RankedLayout {
  Layout layout;
  Prediction prediction;
  std::vector<int> split;          ///< [model part] transformer layers, as they are placed
  std::vector<std::string> notes;  ///< of the partition
};

struct SearchCounts {
  std::int64_t enumerated = 0;  ///< layouts without conflict
  std::int64_t conflicts = 0;
  std::int64_t too_large = 0;  ///< did not fit, of those that were looked at
  std::int64_t simulated = 0;
  std::int64_t outrun = 0;  ///< their bound was no better than what was kept
};

struct SearchResult {
  std::vector<RankedLayout> ranked;   ///< by step time; empty: there is no feasible layout
  std::vector<Rejection> rejections;  ///< conflicts always; all others with `explain`
  SearchCounts counts;
  std::string infeasible;  ///< where nothing is feasible: by how much, and the nearest change that helps
};

/// Throws SpecError or ScheduleError for what is the user's mistake (see Pricing, make_schedule); what cannot exist or
/// does not fit is a rejection. Where nothing fits, the request leaves offload open and the cluster names its host, the
/// search is made again with the optimizer offloaded, then with activations too.
SearchResult search_layouts(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training,
                            const LayoutRequest& request, const SearchOptions& options = {});

}}  // namespace plumb::planner
