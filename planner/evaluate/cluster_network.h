#pragma once
// The network that a layout's messages and collectives share on a cluster, and what is wrong with it.
//
//   NetworkSpec network = cluster_network(cluster, replicas, groups, lowered, costs,
//                                         {.slow = {parse_slow_rank("rank=17:0.8")}});
//
// Device w is world rank w, in nodes of `devices_per_node`; a port per device at the node link's effective rate and a
// NIC per device (or as many as the cluster says) at the network's, leaves and trunks as the cluster is wired: the
// rates at which the cost table prices (cost/ collective_price.h), so that what is alone takes its price. What is
// offloaded shares its device's link to the host where the cluster says that something else uses it, a switch's, and
// the memory of its node; what is evicted to a partner rank shares the links of messages.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/cluster_spec.h"
#include "schedules/process_grid.h"
#include "simulator/network/placement/place_inner.h"
#include "simulator/network/simulate_network.h"
#include "simulator/network/topology/topology.h"

namespace plumb { inline namespace planner {

/// A rank that computes at a share of the normal speed.
struct SlowRank {
  int world_rank = 0;
  double speed = 1;
};

/// Links that have a share of their capacity left, or none: "nic:node3" all NICs of a node, "nic:rank17" and
/// "nvlink:rank17" those of a rank, "link:trunk_up:leaf0" the link of that name (simulator/network/topology/fabric.h,
/// spec/topology_spec.h).
struct DegradedLinks {
  enum class Kind { kNic, kPort, kLink } kind = Kind::kNic;
  bool whole_node = false;
  int number = 0;  ///< of the node or world rank
  std::string name;
  double capacity = 1;  ///< share of normal; 0: failed, and what used the link goes another way
};

struct NetworkOptions {
  bool share_links = true;  ///< false: every transfer has its links to itself, and only slow ranks count
  Replicas replicas = Replicas::kFolded;
  std::vector<SlowRank> slow;
  std::vector<DegradedLinks> degraded;
  std::optional<Topology> topology;  ///< what is wired to what, instead of the cluster's own fabric
};

/// "rank=17:0.8" and "nic:node3=0.5". Throw SpecError if the text is not of that form, the capacity is not between 0
/// and 1, or the speed not above 0 and at most 1.
SlowRank parse_slow_rank(std::string_view text);
DegradedLinks parse_degraded_links(std::string_view text);

/// [replica * ranks + rank] speeds; empty if no rank is slow. The ranks of a tensor group keep step, so the slowest of
/// them sets the pace of all. Throws SpecError naming the range if a rank does not exist.
std::vector<double> rank_speeds(const ProcessGrid& grid, const std::vector<SlowRank>& slow);

/// `groups` are the tensor, context and expert groups of the same ranks, whose collectives inside actions share links
/// as well. On a topology of the user's own, rings go through the nodes of `devices_per_node` devices all the same.
/// What failed links cut off goes the shortest other way. Throws SpecError naming the range if a slow rank, a node or a
/// rank of degraded links does not exist; naming the nearest if no link has the name; if ports or NICs of a topology
/// are to be degraded; naming the ranks if a topology, or what failed links leave of it, does not connect two that
/// exchange data, or has fewer devices than the grid ranks.
NetworkSpec cluster_network(const ClusterSpec& cluster, const ProcessGrid& grid, const InnerGrids& groups,
                            const Schedule& lowered, const CostTable& costs, const NetworkOptions& options);

}}  // namespace plumb::planner
