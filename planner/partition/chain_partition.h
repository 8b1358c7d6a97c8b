#pragma once
// A chain of nodes in computing order to the stages of a pipeline: which consecutive nodes each has.
//
// The slowest stage, or message if that takes longer, is made as fast as it can be (PipeDream's dynamic programming,
// Narayanan et al. 2019, section 3.1, with a device a stage); of the ways that are within 1 % of it the one with the
// fewest bytes between stages. A stage holds its weights, and the activations of its micro-batches in flight.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct Chain {
  std::vector<Seconds> seconds;          ///< [node] of a micro-batch, forth and back
  std::vector<double> state_bytes;       ///< [node] weights, gradients, optimizer state; empty: none
  std::vector<double> activation_bytes;  ///< [node] kept of a micro-batch; empty: none
  std::vector<double> cut_bytes;         ///< [place] of a micro-batch, before node 0, ..., behind the last; empty: none
};

struct ChainLimits {
  int parts = 1;
  std::vector<int> in_flight;  ///< [part] micro-batches whose activations it holds; empty: one
  double bytes = std::numeric_limits<double>::infinity();
  std::vector<double> bytes_per_second;  ///< [boundary] of its link; empty: messages take no time
};

/// [part] how many nodes it has, 1 or more; nothing if no way fits the memory. Asserts that there are as many nodes as
/// parts.
std::optional<std::vector<int>> chain_partition(const Chain& chain, const ChainLimits& limits);

}}  // namespace plumb::planner
