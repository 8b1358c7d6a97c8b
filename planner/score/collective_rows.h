#pragma once
// Published runs of collectives are compared with NCCL's model of their cluster.
//
//   const CollectiveScore score = score_collectives({read_collective_rows(published)}, presets);
//
// A row has `collective`, `bytes` (the whole buffer), `gpus`, `nodes`, `hardware` and a measured time, bus bandwidth or
// algorithm bandwidth. Rows whose machines are alike to NCCL (an H100 and an H200 node) share one set of at most three
// constants (price/collective/nccl_launch_fit.h). The constants are fitted on one half of the machine's sweeps and
// judged on the other, both ways round. A sweep is all rows of one source with the same hardware, collective, ranks,
// nodes and forced algorithm. Whole sweeps are dealt, the longest first, each to the half that has fewer rows. A
// machine with one sweep only is not judged. The error of a row is predicted / measured time - 1.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/price/collective/group_placement.h"
#include "planner/price/collective/nccl_launch_fit.h"
#include "planner/score/error_statistics.h"
#include "planner/score/score.h"
#include "planner/spec/cluster_spec.h"
#include "schedules/cost_table.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct CollectiveRow {
  std::string id;
  std::string preset;  ///< cluster preset
  std::string sweep;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  GroupPlacement group;
  std::int64_t bytes = 0;
  std::optional<NcclAlgorithm> only;  ///< algorithm to which the run was limited
  Seconds measured{0};
};

struct CollectiveRows {
  std::vector<CollectiveRow> rows;
  std::vector<SkippedRow> skipped;
  int others = 0;  ///< rows of other quantities: they have no `collective`
};

/// Reads the rows of a file. Unknown keys are ignored. A row that cannot be mapped is skipped with its reason.
CollectiveRows read_collective_rows(const PublishedRows& published);

/// Returns the factor between time and nccl-tests' bus bandwidth: bus = factor * bytes / time. Source:
/// NVIDIA/nccl-tests doc/PERFORMANCE.md.
double bus_factor(CollectiveKind kind, int ranks);

struct ScoredCollective {
  CollectiveRow row;
  NcclEstimate estimate;               ///< estimate without constants
  int half = 0;                        ///< half whose constants were fitted on this row
  double zero_error = 0;               ///< error without constants
  double fitted_error = 0;             ///< error with the constants of its own half
  std::optional<double> unseen_error;  ///< error with the constants of the other half
};

/// Errors of all rows, and of the rows of 16 MiB and more.
struct CollectiveErrors {
  ErrorStatistics all;
  ErrorStatistics large;
};

struct CollectiveClusterScore {
  std::string cluster;                 ///< presets that share the constants: "h100, h200"
  std::vector<std::string> sweeps[2];  ///< [half]
  LaunchFit fits[2];                   ///< [half]
  CollectiveErrors zero, fitted, unseen;
  std::vector<ScoredCollective> rows;
};

struct CollectiveScore {
  std::vector<CollectiveClusterScore> clusters;
  std::vector<SkippedRow> skipped;
  int others = 0;
  CollectiveErrors unseen;  ///< over all clusters
};

/// Returns the score of these files. `presets` is by name ("a100", "h100", "h200", "b200"); the presets' own constants
/// are not used. A row of a preset that is not given is skipped.
CollectiveScore score_collectives(const std::vector<CollectiveRows>& files,
                                  const std::map<std::string, ClusterSpec>& presets);

nlohmann::ordered_json to_json(const CollectiveScore& score);

}}  // namespace plumb::planner
