#pragma once
// Measurements of NCCL among the GPUs of one machine become parts of a cluster.

#include <string>
#include <string_view>
#include <vector>

#include "executor/cuda_library/nccl_library.h"
#include "planner/calibrate/fit_cluster.h"

namespace plumb { inline namespace tools {

/// Returns the cluster with these parts set:
///   collective_tables      times out of place of each collective that the planner prices, for each group
///   node                   the link fitted to send and receive in the smallest group, and, in a cluster of one node,
///                          "message" samples; where the cluster has an "nccl" block its links stay, and the block's
///                          constants are fitted (planner/calibrate/fit_cluster.h)
///   collective_slowdown    the slowdown beside the all-reduce of the largest group; where nothing was computed
///                          meanwhile, or nothing was measured, it stays as it is and a note says so
/// Each entry of `measured` is a group of GPUs; a group of one is not used. `format` is the number format of the
/// products. Throws SpecError if a node has fewer devices than a group, if send and receive do not take longer with
/// size, or as fit_cluster().
ClusterFit with_nccl(ClusterSpec cluster, const std::vector<NcclMeasurement>& measured, std::string_view format,
                     const std::string& date);

}}  // namespace plumb::tools
