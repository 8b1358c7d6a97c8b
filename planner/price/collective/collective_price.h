#pragma once
// What one collective or message lasts, by where its group sits. Three sources, the first that the cluster has:
//
//   measured   a table of this collective and group shape: log-log interpolation, and beyond its ends the model below
//              times what it is off by there
//   NCCL       the estimate and the choice of NCCL's own model, with the cluster's constants (cost/nccl/)
//   ring       alpha-beta on rings, where a cluster says nothing of NCCL. A ring of n ranks on N nodes takes `steps`
//              hops; a chunk crosses between nodes `crossings` times and stays inside a node for the rest:
//     t = (steps - crossings) * latency_node + crossings * latency_network + volume / bandwidth
//     all-reduce       steps 2(n-1), crossings 2(N-1), volume 2(n-1)/n * bytes
//     all-gather       steps  n-1,   crossings  N-1,   volume  (n-1)/n * bytes
//     reduce-scatter   as all-gather
//     broadcast        steps  n-1,   crossings  N-1,   volume  bytes (pipelined along the ring)
//     all-to-all       pairwise, n-1 rounds of bytes/n; what stays in the node and what leaves it go side by side:
//                      t = (n-1) * latency + max(inside / bandwidth_node, outside / bandwidth_network)
//     `bandwidth` is the node link's inside one node; where a node's d devices are a full mesh, (g - 1) / (d - 1) of it
//     for g of them, since a device has a link to each other one. Across nodes it is the slower of the node link and
//     the NICs of the g ranks that the group has on its emptiest node: rings enter and leave a node through all of
//     them.
// `bytes` is the whole buffer of one rank (of the gathered result for all-gather). A group of one costs nothing.
// Sources: step and crossing counts, NVIDIA/nccl src/graph/tuning.cc (Apache-2.0, facts restated); 2(n-1)/n is
// nccl-tests' bus factor (doc/PERFORMANCE.md); bandwidth-optimal ring, Patarasuk & Yuan 2009.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/price/collective/group_placement.h"
#include "planner/price/collective/nccl_channels.h"
#include "planner/price/collective/nccl_tuning.h"
#include "planner/price/kernel/shape_correction.h"
#include "planner/spec/cluster_spec.h"
#include "schedules/cost_table.h"
#include "schedules/process_grid.h"

namespace plumb { inline namespace planner {

struct CollectivePrices {
  LinkCost node;                            ///< effective bandwidth and latency of a hop inside a node
  LinkCost network;                         ///< of one device's NIC share
  std::vector<ShapeCorrection> all_reduce;  ///< of measured {bytes, group size}; empty: the formulas
  int mesh_devices = 0;                     ///< of a node with a link for each pair of devices; 0: it has switches
  std::optional<NcclMachine> nccl;
  std::vector<CollectiveTable> tables;
};

/// Throws SpecError if a needed link is missing: several devices in a node without "bandwidth_gb_per_s", several nodes
/// without "network".
CollectivePrices collective_prices(const ClusterSpec& cluster, int busy_ranks);

/// How the cluster's "nccl" block and its links look to NCCL; nothing without the block.
std::optional<NcclMachine> nccl_machine(const ClusterSpec& cluster);

struct PricedCollective {
  Seconds time{0};
  std::string_view algorithm;  ///< "measured", what NCCL chose, or "ring"
  std::string_view protocol;   ///< of NCCL's choice; otherwise empty
};

/// Without NCCL, measured all-reduces of the cluster (`all_reduce`) correct all-reduce inside a node; the other kinds
/// follow the formulas.
PricedCollective price_collective(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                                  std::int64_t bytes);

/// The time of the same.
Seconds collective_time(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                        std::int64_t bytes);

/// The times of many collectives: what NCCL's model works out without their sizes is kept.
class CollectiveTimes {
 public:
  /// As collective_time.
  Seconds operator()(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                     std::int64_t bytes);

 private:
  std::vector<NcclTuning> tunings_;
};

/// The link that the slowest of the transfers between two pipeline ranks' devices takes.
LinkCost pipeline_link(const CollectivePrices& prices, const ProcessGrid& grid, int source_rank, int destination_rank,
                       int devices_per_node);

}}  // namespace plumb::planner
