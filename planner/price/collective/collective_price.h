#pragma once
// The time of one collective or message, by the placement of its group. The first of these sources that the cluster has
// is used:
//
//   measured   a table of this collective and group shape: log-log interpolation; beyond its ends the model below times
//              the error that it has there
//   NCCL       the estimate and the choice of NCCL's own model, with the cluster's constants (nccl_tuning.h)
//   ring       alpha-beta on rings, where a cluster says nothing of NCCL. A ring of n ranks on N nodes takes `steps`
//              hops; a chunk crosses between nodes `crossings` times and stays inside a node for the rest:
//     t = (steps - crossings) * latency_node + crossings * latency_network + volume / bandwidth
//     all-reduce       steps 2(n-1), crossings 2(N-1), volume 2(n-1)/n * bytes
//     all-gather       steps  n-1,   crossings  N-1,   volume  (n-1)/n * bytes
//     reduce-scatter   like all-gather
//     broadcast        steps  n-1,   crossings  N-1,   volume  bytes (pipelined along the ring)
//     all-to-all       pairwise, n-1 rounds of bytes/n; bytes that stay in the node and bytes that leave it go side by
//                      side: t = (n-1) * latency + max(inside / bandwidth_node, outside / bandwidth_network)
// Inside one node `bandwidth` is the node link's. Where a node's d devices are a full mesh, g of them have (g - 1) / (d
// - 1) of it, since a device has a link to each other one. Across nodes `bandwidth` is the slower of the node link and
// the NICs of the g ranks that the group has on its emptiest node: rings enter and leave a node through all of them.
//
// `bytes` is the whole buffer of one rank (the gathered result for all-gather). A group of one costs nothing. Sources:
// step and crossing counts, NVIDIA/nccl src/graph/tuning.cc (Apache-2.0, facts restated); 2(n-1)/n is nccl-tests' bus
// factor (doc/PERFORMANCE.md); bandwidth-optimal ring, Patarasuk & Yuan 2009.

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/price/collective/group_placement.h"
#include "planner/price/collective/nccl_channels.h"
#include "planner/price/collective/nccl_tuning.h"
#include "planner/price/kernel/shape_correction.h"
#include "planner/spec/cluster_spec.h"
#include "planner/threads/memo.h"
#include "schedules/cost_table.h"
#include "schedules/process_grid.h"

namespace plumb { inline namespace planner {

struct CollectivePrices {
  LinkCost node;                            ///< effective bandwidth and latency of a hop inside a node
  LinkCost nic;                             ///< effective bandwidth and latency of a NIC
  LinkCost network;                         ///< the same of a device's share of the NICs, while all devices send
  std::vector<ShapeCorrection> all_reduce;  ///< measured {bytes, group size}; empty: the formulas
  int mesh_devices = 0;  ///< devices of a node with a link for each pair of devices; 0: the node has switches
  std::optional<NcclMachine> nccl;
  std::vector<CollectiveTable> tables;
};

/// Returns the prices of collectives. Throws SpecError if a needed link is missing: several devices in a node without
/// "bandwidth_gb_per_s", several nodes without "network".
CollectivePrices collective_prices(const ClusterSpec& cluster, int busy_ranks);

/// Returns the cluster's "nccl" block and its links as NCCL sees them; nothing without the block.
std::optional<NcclMachine> nccl_machine(const ClusterSpec& cluster);

struct PricedCollective {
  Seconds time{0};
  std::string_view algorithm;  ///< "measured", NCCL's choice, or "ring"
  std::string_view protocol;   ///< protocol of NCCL's choice; otherwise empty
};

/// Returns the price of a collective. Without NCCL, measured all-reduces of the cluster (`all_reduce`) correct
/// all-reduce inside a node; the other kinds follow the formulas.
PricedCollective price_collective(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                                  std::int64_t bytes);

/// Returns the time of price_collective().
Seconds collective_time(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                        std::int64_t bytes);

/// The times of many collectives; it keeps the part of NCCL's model that does not depend on their sizes.
class CollectiveTimes {
 public:
  /// Returns collective_time().
  Seconds operator()(const CollectivePrices& prices, const GroupPlacement& placement, CollectiveKind kind,
                     std::int64_t bytes);

 private:
  Memo<std::pair<CollectiveKind, GroupPlacement>, NcclTuning> tunings_;
};

/// Devices in a row, numbered over the nodes, or in several.
struct DeviceRange {
  int first = 0;
  int count = 1;
  int together = 0;  ///< devices of a row; 0: all
  int stride = 0;    ///< from a row to the next

  int at(int place) const {
    return together == 0 ? first + place : first + place / together * stride + place % together;
  }
};

/// Returns the link of the slowest transfer between two pipeline ranks' devices: each device of the larger run exchanges
/// with the one at the same place of the other. The `tensor` devices of a tensor group do so at once and share their
/// NICs; that others send meanwhile is for the simulation to say (evaluate/cluster_network.h).
LinkCost pipeline_link(const CollectivePrices& prices, const DeviceRange& source, const DeviceRange& destination,
                       int devices_per_node, int tensor);

}}  // namespace plumb::planner
