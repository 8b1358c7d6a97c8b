#pragma once
// What a step's time is made of: the derivative of the makespan with respect to the scale of each cost, along the
// critical path, from one simulation.
//
//   If all computing of stage 3 becomes 1 % slower, the step becomes 1 % of compute_by_stage[3] longer.
//
// Exact for small changes away from ties: where two paths are equally long, faster costs gain less than is told here.

#include <string>
#include <vector>

#include "schedules/cost_table.h"
#include "simulator/path/critical_path.h"

namespace plumb { inline namespace simulator {

/// Of one kind of collective of one group, inside actions or by itself.
struct CollectiveSensitivity {
  Group group = Group::kTensor;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Seconds seconds{0};
};

/// Of the messages from one rank to another.
struct LinkSensitivity {
  int source_rank = 0;
  int destination_rank = 0;
  Seconds bandwidth{0};
  Seconds latency{0};
};

/// Of all shared links of one kind ("nic_up"): seconds that the step grows by with them narrower in proportion.
struct SharedLinkSensitivity {
  std::string kind;
  Seconds seconds{0};
};

/// Seconds of the makespan that grow in proportion to a cost. All of them together are the makespan.
struct Sensitivity {
  std::vector<Seconds> compute_by_stage;  ///< [stage] computing of F, B, I, W, R and OPTIMIZER_STEP
  Seconds group_collectives{0};           ///< inside actions: of tensor, context and expert groups
  Seconds bandwidth{0};                   ///< messages: bytes / bandwidth
  Seconds latency{0};                     ///< messages
  Seconds unshard{0};                     ///< gathering of parameters
  Seconds reduction{0};                   ///< of gradients
  Seconds moves{0};                       ///< OFFLOAD, RELOAD, EVICT, LOAD
  Seconds capacity{0};                    ///< narrower shared links; 0 where nothing is shared
  // The same once more, in detail, where it is above 0.
  std::vector<CollectiveSensitivity> collectives;   ///< of group_collectives, unshard and reduction, by group and kind
  std::vector<LinkSensitivity> links;               ///< of bandwidth and latency, by source and destination
  std::vector<SharedLinkSensitivity> shared_links;  ///< of capacity, by kind of link
};

/// Of the critical path of a simulation without shared links (network/network_sensitivity.h has those with), of
/// `lowered` under `costs`. Empty for an empty path.
Sensitivity sensitivity_of(const Schedule& lowered, const CostTable& costs, const std::vector<CriticalStep>& path);

}}  // namespace plumb::simulator
