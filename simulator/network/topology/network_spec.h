#pragma once
// The network of a simulation as data: it says which links the messages and the collectives of each replica cross. A
// link that two of them cross at a time is shared fairly between them (simulator/network/flow/max_min.h).
//
//   NetworkSpec trunk{.links = {{"trunk", 1e9}}, .routes = {{.uses = {{0, 1}}}},
//                     .activation_route = {0, 0, -1}, .gradient_route = {-1, 0, 0}};   // three stages, one shared wire
//
// Replicas are copies of the pipeline: replica k of pipeline rank r is world rank r * replicas + k (Megatron-LM's
// order, schedules/process_grid.h). The cost table says how fast a message or a collective is alone; the network says
// how much of that is left when others use the same links. simulator/network/placement/place.h makes it for a cluster
// and a layout.

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "simulator/network/flow/flows.h"

namespace plumb { inline namespace simulator {

struct NetworkLink {
  std::string name;
  double bytes_per_second = 0;  ///< capacity

  friend bool operator==(const NetworkLink&, const NetworkLink&) = default;
};

inline constexpr std::int32_t kNoRoute = -1;  ///< shares nothing with anyone

/// An UNSHARD or REDUCE_GRAD of a stage as one flow over all links that its ring crosses. It starts when every replica
/// of the group has issued it, and ends for all of them at once. Its rate alone is volume / price.
struct CollectiveFlow {
  Op op = Op::kReduceGrad;
  int stage = 0;
  std::vector<int> replicas;  ///< ascending
  std::int32_t route = kNoRoute;
  double volume_ratio = 1;  ///< bytes over each link of the ring for a byte of the buffer: 2(n-1)/n for an all-reduce

  friend bool operator==(const CollectiveFlow&, const CollectiveFlow&) = default;
};

/// The collectives of one group and kind inside the actions of a stage (TP, CP and EP segments of the cost table), each
/// as one flow over all links that it crosses. A collective starts when every replica of the group has come to it, and
/// ends for all of them at once.
struct InnerCollective {
  Group group = Group::kTensor;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int stage = 0;
  std::vector<int> replicas;  ///< ascending
  std::int32_t route = kNoRoute;
  double volume_ratio = 1;                                                 ///< see CollectiveFlow
  double most_bytes_per_second = std::numeric_limits<double>::infinity();  ///< upper limit of its rate alone

  friend bool operator==(const InnerCollective&, const InnerCollective&) = default;
};

/// The kinds of moves are OFFLOAD, RELOAD, EVICT and LOAD, in this order.
inline constexpr std::size_t kMoveKinds = 4;
inline std::size_t move_number(Op move) {
  return static_cast<std::size_t>(move) - static_cast<std::size_t>(Op::kOffload);
}
inline bool is_move(Op op) {
  return takes_away(op) || brings_back(op);
}

struct NetworkSpec {
  std::vector<NetworkLink> links;
  std::vector<Route> routes;
  int replicas = 1;
  std::vector<std::int32_t> activation_route;  ///< [replica * stages + stage] for SEND_F; empty if none shares
  std::vector<std::int32_t> gradient_route;    ///< [replica * stages + stage] for SEND_B
  /// [move_number][replica * stages + stage] by the stage that is moved; empty if none shares.
  std::array<std::vector<std::int32_t>, kMoveKinds> move_routes;
  std::vector<CollectiveFlow> collectives;  ///< collectives that are not listed are of one replica and share nothing
  std::vector<InnerCollective> inner;       ///< collectives inside actions; those that are not listed share nothing
  std::vector<double> speeds;               ///< [replica * ranks + rank] share of the normal speed; empty if all are 1
  double collective_slowdown = 0;  ///< x: compute runs at 1 / (1 + x) while a collective of its rank is under way
};

/// Throws SpecError if a table has not an entry for each stage and replica, a route, link, stage or replica is named
/// that is not there, a capacity, share, weight or speed is not above 0, or the slowdown is negative.
void check_network(const NetworkSpec& network, const Schedule& schedule);

/// True if any message or collective crosses a link.
bool has_routes(const NetworkSpec& network);

/// Return the bytes/s alone of a send (its link's bandwidth), of a move, or of a collective (volume over price; 0 where
/// it costs nothing). `buffer_bytes_per_second` is the segment's bytes over its price.
double message_rate(const Schedule& schedule, const CostTable& costs, int stage, bool gradient);
/// Returns the rate of OFFLOAD, RELOAD, EVICT or LOAD: the stage's activation (StageMemory::forward_bytes) over the
/// move's price.
double move_rate(const CostTable& costs, const Action& move);
double collective_rate(const CollectiveFlow& flow, const CostTable& costs, const Action& action);
double inner_rate(const InnerCollective& flow, double buffer_bytes_per_second);

}}  // namespace plumb::simulator
