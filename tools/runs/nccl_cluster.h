#pragma once
// What NCCL has shown among the GPUs of one machine, as a part of a cluster.

#include <string>
#include <string_view>
#include <vector>

#include "executor/nccl/nccl_library.h"
#include "planner/calibrate/fit_cluster.h"

namespace plumb { inline namespace tools {

/// The cluster with
///   collective_tables      of each collective that the planner prices and each group, out of place
///   node                   the link that send and receive have shown in the smallest group, and, of a cluster of one
///                          node, "message" samples; where the cluster has an "nccl" block its links stay, and the
///                          block's constants are fitted (planner/calibrate/fit_cluster.h)
///   collective_slowdown    beside the all-reduce of the largest group; where nothing was computed meanwhile, or
///                          nothing was measured, a note, and it stays as it is
/// `measured`: a group of GPUs each, of one not used; `format`: of the products. Throws SpecError if a node has fewer
/// devices than a group, if send and receive do not take longer with size, or as fit_cluster() does.
ClusterFit with_nccl(ClusterSpec cluster, const std::vector<NcclMeasurement>& measured, std::string_view format,
                     const std::string& date);

}}  // namespace plumb::tools
