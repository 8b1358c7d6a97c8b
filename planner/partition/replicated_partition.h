#pragma once
// The partition of a chain of measured nodes into stages of one or more devices each; the replicas of a stage take
// micro-batches in turn.
//
// PipeDream's dynamic programming over one level of machines (Narayanan et al. 2019, section 3.1) minimises the slowest
// stage or transfer:
//   stage     (T + 4 (r - 1) W / (B r)) / r     r replicas all-reduce W bytes of weights over links of B bytes a second
//   transfer  2 a / B                           activations one way and gradients the other, of one micro-batch
// Transfers and the memory of a stage count here. A stage holds ceil(m / r) micro-batches in flight where m devices are
// left from it to the end. PipeDream's own optimizer leaves out both unless told otherwise.

#include <limits>
#include <optional>
#include <vector>

#include "planner/partition/chain_partition.h"

namespace plumb { inline namespace planner {

struct ReplicatedLimits {
  int devices = 1;
  double bytes_per_second = std::numeric_limits<double>::infinity();
  double bytes = std::numeric_limits<double>::infinity();  ///< memory of a device
  bool transfers = true;
  bool straight = false;  ///< one device a stage, all devices used
};

struct ReplicatedStage {
  int nodes = 0;
  int replicas = 1;
  Seconds seconds{0};  ///< time between two micro-batches that leave the stage

  friend bool operator==(const ReplicatedStage&, const ReplicatedStage&) = default;
};

struct ReplicatedPartition {
  std::vector<ReplicatedStage> stages;
  Seconds slowest{0};  ///< time between two micro-batches that leave the pipeline
};

/// Returns the fastest partition; nothing if none fits the memory. `weight_bytes` is [node]. The partition may leave
/// devices unused, so that more devices never make it slower.
std::optional<ReplicatedPartition> replicated_partition(const Chain& chain, const std::vector<double>& weight_bytes,
                                                        const ReplicatedLimits& limits);

}}  // namespace plumb::planner
