#pragma once
// What one collective or message lasts, by where its group sits: alpha-beta on rings.
//
// A ring of n ranks on N nodes takes `steps` hops; a chunk crosses between nodes `crossings` times and stays inside a
// node for the rest:
//   t = (steps - crossings) * latency_node + crossings * latency_network + volume / bandwidth
//   all-reduce       steps 2(n-1), crossings 2(N-1), volume 2(n-1)/n * bytes
//   all-gather       steps  n-1,   crossings  N-1,   volume  (n-1)/n * bytes
//   reduce-scatter   as all-gather
//   broadcast        steps  n-1,   crossings  N-1,   volume  bytes (pipelined along the ring)
//   all-to-all       pairwise, n-1 rounds of bytes/n; what stays in the node and what leaves it go side by side:
//                    t = (n-1) * latency + max(inside / bandwidth_node, outside / bandwidth_network)
// `bytes` is the whole buffer of one rank (of the gathered result for all-gather). A group of one costs nothing.
// `bandwidth` is the node link's inside one node. Across nodes it is the slower of the node link and the NICs of the g
// ranks that the group has on its emptiest node: rings enter and leave a node through all of them.
// Sources: step and crossing counts, NVIDIA/nccl src/graph/tuning.cc (Apache-2.0, facts restated); 2(n-1)/n is
// nccl-tests' bus factor (doc/PERFORMANCE.md); bandwidth-optimal ring, Patarasuk & Yuan 2009.

#include <cstdint>
#include <vector>

#include "planner/cost/shape_correction.h"
#include "planner/spec/cluster_spec.h"
#include "schedules/cost_table.h"
#include "schedules/process_grid.h"

namespace plumb {

/// Where the ranks of one group sit.
struct GroupPlacement {
  int ranks = 1;
  int nodes = 1;
  int ranks_per_node = 1;  ///< on the node that has fewest of them

  friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};

GroupPlacement placement_of(const std::vector<int>& world_ranks, int devices_per_node);

/// The worst placed tensor, context or data group among the devices of one pipeline rank: most nodes, then fewest ranks
/// on a node.
GroupPlacement worst_placement(const ProcessGrid& grid, Group group, int pipeline_rank, int devices_per_node);

struct CollectivePrices {
  LinkCost node;                            ///< effective bandwidth and latency of a hop inside a node
  LinkCost network;                         ///< of one device's NIC share
  std::vector<ShapeCorrection> all_reduce;  ///< of measured {bytes, group size}; empty: the formulas
};

/// Throws SpecError if a needed link is missing: several devices in a node without "bandwidth_gb_per_s", several nodes
/// without "network".
CollectivePrices collective_prices(const ClusterSpec& cluster, int busy_ranks);

/// Measured all-reduces of the cluster correct all-reduce inside a node; the other kinds follow the formulas.
Seconds collective_time(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                        std::int64_t bytes);

/// The link that the slowest of the transfers between two pipeline ranks' devices takes.
LinkCost pipeline_link(const CollectivePrices& prices, const ProcessGrid& grid, int source_rank, int destination_rank,
                       int devices_per_node);

}  // namespace plumb
