#pragma once
// PipeDream's optimizer, faults included: the stages that Narayanan et al. 2019's program
// (optimizer/optimizer_graph_hierarchical.py) finds over several levels of machines. On each level
//
//   A(i, j, m) = min of  (L(i, j) + 4 (m - 1) W / (B m) / n) / m                                  m replicas of one stage
//                and     max(A(i, k, m - r), (L(k + 1, j) + 4 (r - 1) W / (B r)) / r, transfers)  over k, r
//
// is the time of a minibatch on m machines for what state j has beyond state i - 1. L is the time on one machine, whose
// inside is the level below with its n machines; W are the weights and B the bandwidth of the level.
//
// The faults: transfers count only with a compression ratio. The memory of an unsplit stage is that of the replicas
// behind it, so that pure data parallelism always fits. The lower levels may cut at states k that do not contain state
// i - 1, and then subtract work that is not in k. Weights between machines are summed for each minibatch of a split
// stage and for one of n of an unsplit one.

#include <optional>
#include <string>
#include <vector>

#include "planner/partition/profiled_graph.h"
#include "planner/partition/stage.h"

namespace plumb { inline namespace planner {

struct PipedreamOptions {
  std::vector<MachineLevel> levels;         ///< from the devices of one machine outwards
  bool straight = false;                    ///< PipeDream's --straight_pipeline: no replicas
  bool fewer_machines = false;              ///< --use_fewer_machines
  std::optional<double> memory_bytes;       ///< of a device, with --use_memory_constraint
  std::optional<double> compression_ratio;  ///< --activation_compression_ratio
};

/// Returns the stages of the innermost level, and as `slowest` the time of a minibatch that PipeDream prints; nothing
/// if no partition fits the memory. Throws SpecError as pipedream_states() does.
std::optional<StagePartition> pipedream_partition(const ProfiledGraph& graph, const PipedreamOptions& options,
                                                  const std::string& file);

}}  // namespace plumb::planner
