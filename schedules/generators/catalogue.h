#pragma once
// The catalogue holds every schedule by name: who defined it, what it demands and what its paper promises.
//
//   Schedule s = make_schedule("interleaved", {.ranks = 4, .microbatches = 8, .chunks = 2});

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct ScheduleParameters {
  int ranks = 1;         ///< p
  int microbatches = 1;  ///< m
  int chunks = 1;        ///< v, stages that a rank holds
  /// interleaved: micro-batches that a chunk runs before the next chunk's turn; 0 for the number of ranks
  int group = 0;
  int slices = 1;              ///< seq1f1b: k, pieces that a sequence is cut into
  int batch = 0;               ///< pipedream-2bw: micro-batches between two optimizer steps; 0 for the number of ranks
  int node_ranks = 0;          ///< tawpipe: ranks of a node, a divisor of p; 0 for one node
  bool vertical_sync = false;  ///< pipedream: a micro-batch sees one version of the weights on every stage
  double memory_ratio = 1;     ///< zb-auto: activations that a rank may hold, in multiples of the ranks; 1 or more
  double released_at_input_grad_ratio = 0;  ///< zb-auto: the share of an activation that I frees already, below 1
  ChunkCosts costs;      ///< zb-auto, zb-v, v-half, v-min: costs to make it for; only F, I, W and the hop latency count
  SimTime goal_span{0};  ///< zb-v, v-half, v-min: a span that is short enough, at which the search for given costs ends
};

struct CatalogueEntry {
  std::string_view name;
  std::string_view origin;      ///< author and year
  std::string_view constraint;  ///< the p, m and v that it demands; "any m" where nothing
  /// Idle time of a rank in a balanced pipeline with free links; F and B are of a rank's whole share.
  std::string_view bubble;
  std::string_view activations;  ///< peak on rank r, in activations of one chunk for one micro-batch
  bool takes_chunks = false;     ///< it takes any number of chunks a rank
  int chunks = 1;                ///< without takes_chunks: the number of chunks that it always has
  bool takes_slices = false;
  bool takes_group = false;
  bool takes_batch = false;
  bool takes_vertical_sync = false;
  bool takes_node_ranks = false;
  bool takes_memory = false;  ///< it takes ScheduleParameters::memory_ratio
  bool both_ends = false;     ///< micro-batches enter at both ends, and there are two at least: a stage has two copies
  bool pairs = false;         ///< with enough micro-batches some actions are overlapped pairs
  bool repeats = true;        ///< its middle repeats (period_of)
  bool made_for_costs = false;  ///< it has another order for other ScheduleParameters::costs
  /// Says what the schedule does for which the planner has no price and no backend has an exchange: "cuts the output
  /// layer into shards". Empty for the others.
  std::string_view unpriced;
  std::function<Schedule(const ScheduleParameters&)> make;
};

/// Returns all entries, in the order of the README's table.
const std::vector<CatalogueEntry>& catalogue();

/// Returns the entry of that name, in any spelling of papers and frameworks (spellings.h). Throws ScheduleError if
/// there is none; its text names the nearest, or says what the schedule is.
const CatalogueEntry& catalogue_entry(std::string_view name);

/// Returns the number of micro-batches after which the middle of the schedule of that name repeats: the order for m +
/// period is that for m with one more period in its middle, once m is some periods long. It is as many as there are
/// ranks, or as a group of `interleaved` holds, which is several periods of the schedules that repeat sooner. It is 0
/// where the order grows in several places (gpipe, bfs), is made anew for each m (zb-auto; zb-v, v-half and v-min for
/// costs other than F = I = W), or is asynchronous. Throws ScheduleError if there is no such name.
int period_of(std::string_view name, const ScheduleParameters& parameters);

/// Returns the entry of that name (any spelling). Throws ScheduleError if there is no such name (the nearest
/// is named), a number is below 1, chunks are given to a schedule that has none or another parameter to one
/// that does not take it, or it has more than kMostForwards (limits.h).
const CatalogueEntry& checked_entry(std::string_view name, const ScheduleParameters& parameters);

/// Returns the schedule of that name: compute actions only, and OPTIMIZER_STEPs where it is asynchronous.
/// Throws as checked_entry does, and ScheduleError if a constraint of the schedule is broken.
Schedule make_schedule(std::string_view name, const ScheduleParameters& parameters);

}}  // namespace plumb::schedules
