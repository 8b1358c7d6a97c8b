#pragma once
// The network of a simulation as data: which links the messages and the collectives of each replica cross. A link that
// two of them cross at a time is shared fairly between them (network/max_min.h).
//
//   NetworkSpec trunk{.links = {{"trunk", 1e9}}, .routes = {{.uses = {{0, 1}}}},
//                     .activation_route = {0, 0, -1}, .gradient_route = {-1, 0, 0}};   // three stages, one shared wire
//
// Replicas are copies of the pipeline: replica k of pipeline rank r is world rank r * replicas + k (Megatron-LM's
// order, schedules/process_grid.h). How fast a message or a collective is alone is the cost table's word; the network
// says what is left of that when others use the same links. network/place.h makes it for a cluster and a layout.

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "simulator/network/flows.h"

namespace plumb {

struct NetworkLink {
  std::string name;
  double bytes_per_second = 0;  ///< capacity

  friend bool operator==(const NetworkLink&, const NetworkLink&) = default;
};

inline constexpr std::int32_t kNoRoute = -1;  ///< shares nothing with anyone

/// UNSHARD or REDUCE_GRAD of a stage as one flow over all links that its ring crosses. It starts when every replica of
/// the group has issued it, and ends for all of them at once. Its rate alone is volume / price.
struct CollectiveFlow {
  Op op = Op::kReduceGrad;
  int stage = 0;
  std::vector<int> replicas;  ///< ascending
  std::int32_t route = kNoRoute;
  double volume_ratio = 1;  ///< bytes over each link of the ring for a byte of the buffer: 2(n-1)/n for an all-reduce

  friend bool operator==(const CollectiveFlow&, const CollectiveFlow&) = default;
};

struct NetworkSpec {
  std::vector<NetworkLink> links;
  std::vector<Route> routes;
  int replicas = 1;
  std::vector<std::int32_t> activation_route;  ///< [replica * stages + stage] of SEND_F; empty: none shares
  std::vector<std::int32_t> gradient_route;    ///< of SEND_B
  std::vector<CollectiveFlow> collectives;     ///< those that are not here are of one replica and share nothing
  std::vector<double> speeds;                  ///< [replica * ranks + rank] share of the normal speed; empty: all 1
  double collective_slowdown = 0;  ///< x: compute runs at 1 / (1 + x) while a collective of its rank is under way
};

/// Throws SpecError if a table has not an entry for each stage and replica, a route, link, stage or replica is named
/// that is not there, a capacity, share, weight or speed is not above 0, or the slowdown is negative.
void check_network(const NetworkSpec& network, const Schedule& schedule);

/// The same network with only the links that can hold a flow back: those for which all channels together can ask more
/// than the capacity. A channel carries one transfer at a time. Where none is left no two transfers of the schedule can
/// slow each other down, and every one of them takes its own time. `network` has passed check_network. Throws SpecError
/// if a message with a route has an unlimited rate.
NetworkSpec with_limiting_links(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs);

/// True if any message or collective crosses a link.
bool has_routes(const NetworkSpec& network);

/// Bytes/s of a send (its link's bandwidth) or of a collective (volume over price; 0 where it costs nothing) alone.
double message_rate(const Schedule& schedule, const CostTable& costs, int stage, bool gradient);
double collective_rate(const CollectiveFlow& flow, const CostTable& costs, const Action& action);

}  // namespace plumb
