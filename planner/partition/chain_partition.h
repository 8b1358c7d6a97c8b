#pragma once
// The partition of a chain of nodes in computing order into pipeline stages of consecutive nodes.
//
// It minimises the time of the slowest stage or message, whichever takes longer (PipeDream's dynamic programming,
// Narayanan et al. 2019, section 3.1, with a device a stage). Among the partitions within 1 % of the best it takes the
// one with the fewest bytes between stages. A stage holds its weights, and the activations of its micro-batches in
// flight.

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct Chain {
  std::vector<Seconds> seconds;          ///< [node] forward and backward of a micro-batch
  std::vector<double> state_bytes;       ///< [node] weights, gradients, optimizer state; empty: none
  std::vector<double> activation_bytes;  ///< [node] bytes kept of a micro-batch; empty: none
  /// [place] bytes of a micro-batch that cross: before node 0, ..., behind the last node; empty: none.
  std::vector<double> cut_bytes;
};

struct ChainLimits {
  int parts = 1;
  std::vector<int> in_flight;            ///< [part] micro-batches whose activations the part holds; empty: one
  std::vector<double> bytes;             ///< [part] memory; empty: it is not limited
  std::vector<double> slowness;          ///< [part] factor on the time of its nodes; empty: 1
  std::vector<double> bytes_per_second;  ///< [boundary] rate of its link; empty: messages take no time

  double slowness_of(std::size_t part) const { return slowness.empty() ? 1 : slowness[part]; }
};

/// Returns the number of nodes of each part, 1 or more; nothing if no partition fits the memory. Asserts that there are
/// at least as many nodes as parts.
std::optional<std::vector<int>> chain_partition(const Chain& chain, const ChainLimits& limits);

}}  // namespace plumb::planner
