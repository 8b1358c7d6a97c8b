#pragma once
// Gradient buckets that are reduced while the last backward still runs (Li et al. 2020, PyTorch DDP): a
// REDUCE_GRAD(s,k) that is listed directly before the last B or W of s starts inside that action, once bucket k is
// complete.
//
//   0B0 0REDUCE_GRAD 0REDUCE_GRAD/1 0B1 0OPTIMIZER_STEP     both start inside 0B1, which is the host of both

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns, for each [position] of a rank's list, the position of the host: the later action inside which a REDUCE_GRAD
/// starts. It is -1 for all other actions. `copies` is has_copies of the schedule. The host is the last B or W of the
/// stage before its OPTIMIZER_STEP (or the end of the list), with nothing between but messages and other REDUCE_GRADs
/// of the stage. An overlapped pair is no host, since it is over at one moment. A bucket that is reduced once more
/// behind the action has no host. No bucket has a host where stages have copies, because their collectives start
/// together.
std::vector<std::int64_t> hosts_of_reductions(const std::vector<Action>& actions, bool copies);

}}  // namespace plumb::schedules
