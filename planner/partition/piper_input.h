#pragma once
// Inputs of Piper (Tarnawski et al. 2021): a DAG whose nodes have a list of ways for each number of tensor-parallel
// devices, in JSON. Times are in seconds and sizes in bytes, of one micro-batch.

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/partition/profiled_graph.h"

namespace plumb { inline namespace planner {

struct PiperInput {
  ProfiledGraph graph;
  int devices = 1;                ///< "maxDevices"
  double bytes = 0;               ///< "maxMemoryPerDevice"
  double bytes_per_second = 0;    ///< "bandwidth" of a device
  std::int64_t microbatches = 1;  ///< "mbsInBatch"
};

/// Reads an input. Throws SpecError with the place: a number that is none or negative, a node without a way on one
/// device, an edge to a node that is not there or given twice, a cycle, no node at all, too many.
PiperInput parse_piper_input(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
