#pragma once
// The partition of a measured graph in Piper's space (Tarnawski et al. 2021): stages of d replicas, each on t
// tensor-parallel devices, and a way for each node. A micro-batch takes a stage
//   sum over its nodes of (compute / d + 4 (d - 1) W / (d N B) + 2 sum over its edges to other stages of c / (d B))
// where W are the weights, N the micro-batches of a batch, B the bytes a second of a device and c the bytes of the edge
// and of what the tensor-parallel devices of this end exchange for it. A stage keeps ceil(s / d) micro-batches in
// flight, where s is the sum of d from it to the last stage. d divides N.
//
// Each node takes its fastest way. Where that does not fit, nodes change to ways that keep less, those first that lose
// the least time for a byte: Piper's heuristic for this knapsack. Everything else is exact.

#include <cstdint>
#include <optional>

#include "planner/partition/downsets.h"
#include "planner/partition/stage.h"

namespace plumb { inline namespace planner {

struct PiperLimits {
  int devices = 1;
  double bytes = 0;  ///< memory of a device
  double bytes_per_second = 0;
  std::int64_t microbatches = 1;  ///< of a batch
};

/// Returns the fastest partition that cuts at the downsets; nothing if none fits the memory.
std::optional<StagePartition> piper_partition(const ProfiledGraph& graph, const Downsets& downsets,
                                              const PiperLimits& limits);

}}  // namespace plumb::planner
