#pragma once
// Says what a step's time is made of: the derivative of the makespan with respect to the scale of each cost, along the
// critical path, from one simulation.
//
//   If all computing of stage 3 becomes 1 % slower, the step becomes 1 % of compute_by_stage[3] longer.
//
// It is exact for small changes away from ties: where two paths are equally long, faster costs gain less than is told
// here.

#include <string>
#include <vector>

#include "schedules/cost_table.h"
#include "simulator/path/critical_path.h"

namespace plumb { inline namespace simulator {

/// Sensitivity to one kind of collective of one group, inside actions or by itself.
struct CollectiveSensitivity {
  Group group = Group::kTensor;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Seconds seconds{0};
};

/// Sensitivity to the messages from one rank to another.
struct LinkSensitivity {
  int source_rank = 0;
  int destination_rank = 0;
  Seconds bandwidth{0};
  Seconds latency{0};
};

/// Sensitivity to all shared links of one kind ("nic_up"): the seconds that the step grows by as they become narrower,
/// in proportion.
struct SharedLinkSensitivity {
  std::string kind;
  Seconds seconds{0};
};

/// Seconds of the makespan that grow in proportion to a cost. All of them together are the makespan.
struct Sensitivity {
  std::vector<Seconds> compute_by_stage;  ///< [stage] computing of F, B, I, W, R and OPTIMIZER_STEP
  Seconds group_collectives{0};           ///< collectives of tensor, context and expert groups inside actions
  Seconds bandwidth{0};                   ///< bytes / bandwidth of messages
  Seconds latency{0};                     ///< latency of messages
  Seconds unshard{0};                     ///< gathering of parameters; messages of weights, but for their latency
  Seconds reduction{0};                   ///< reduction of gradients; messages of weight gradients
  Seconds moves{0};                       ///< OFFLOAD, RELOAD, EVICT, LOAD
  Seconds capacity{0};                    ///< capacity of shared links; 0 where nothing is shared
  // These repeat the seconds in detail, where they are above 0.
  std::vector<CollectiveSensitivity> collectives;   ///< of group_collectives, unshard, reduction, by group and kind
  std::vector<LinkSensitivity> links;               ///< parts of bandwidth and latency, by source and destination
  std::vector<SharedLinkSensitivity> shared_links;  ///< parts of capacity, by kind of link
};

/// Returns the sensitivity along the critical path of a simulation of `lowered` under `costs` without shared links
/// (network/network_sensitivity.h is for shared links). Empty for an empty path.
Sensitivity sensitivity_of(const Schedule& lowered, const CostTable& costs, const std::vector<CriticalStep>& path);

}}  // namespace plumb::simulator
