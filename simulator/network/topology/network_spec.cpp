#include "simulator/network/topology/network_spec.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace simulator {
namespace {

/// Throws SpecError with the text that the format makes, which is not made where all is well.
template <typename... Args>
void require(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) throw SpecError("the network of the simulation: " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

void check_network(const NetworkSpec& network, const Schedule& schedule) {
  const std::size_t stages = schedule.stages.size();
  require(network.replicas > 0, "it has {} replicas: give 1 or more", network.replicas);
  for (const NetworkLink& link : network.links) {
    require(link.bytes_per_second > 0, "link {} has a capacity of {} bytes/s: give one above 0", link.name,
            link.bytes_per_second);
  }
  for (const Route& route : network.routes) {
    require(route.weight > 0, "a route has a weight of {}: give one above 0", route.weight);
    for (const LinkUse& use : route.uses) {
      require(use.link >= 0 && use.link < static_cast<int>(network.links.size()),
              "a route crosses link {}, but there are {} links", use.link, network.links.size());
      require(use.share > 0, "a route takes a share of {} of link {}: give one above 0", use.share,
              network.links[use.link].name);
    }
  }
  const auto check_route = [&](std::int32_t route) {
    require(route >= kNoRoute && route < static_cast<int>(network.routes.size()),
            "route {} is named, but there are {} routes", route, network.routes.size());
  };
  std::vector<const std::vector<std::int32_t>*> tables{&network.activation_route, &network.gradient_route};
  for (const auto& routes : network.move_routes) tables.push_back(&routes);
  for (const auto* routes : tables) {
    require(routes->empty() || routes->size() == stages * network.replicas,
            "it has routes for {} stages of replicas, the schedule {}: give one for each", routes->size(),
            stages * network.replicas);
    std::ranges::for_each(*routes, check_route);
  }
  for (const CollectiveFlow& flow : network.collectives) {
    check_route(flow.route);
    require(flow.stage >= 0 && flow.stage < static_cast<int>(stages),
            "a collective is of stage {}, but the schedule has {} stages", flow.stage, stages);
    require(is_collective(flow.op), "{} is no collective: give UNSHARD or REDUCE_GRAD", op_name(flow.op));
    require(!flow.replicas.empty() && std::ranges::is_sorted(flow.replicas) && flow.replicas.front() >= 0 &&
                flow.replicas.back() < network.replicas,
            "the {} of stage {} is not of replicas 0 to {}, ascending", op_name(flow.op), flow.stage,
            network.replicas - 1);
  }
  for (const InnerCollective& flow : network.inner) {
    check_route(flow.route);
    const std::string_view group = group_name(flow.group), kind = collective_name(flow.kind);
    require(flow.stage >= 0 && flow.stage < static_cast<int>(stages),
            "the {} {} is of stage {}, but the schedule has {} stages", group, kind, flow.stage, stages);
    require(!flow.replicas.empty() && std::ranges::is_sorted(flow.replicas) && flow.replicas.front() >= 0 &&
                flow.replicas.back() < network.replicas,
            "the {} {} of stage {} is not of replicas 0 to {}, ascending", group, kind, flow.stage,
            network.replicas - 1);
    require(flow.most_bytes_per_second > 0, "the {} {} of stage {} has a highest rate of {} bytes/s: give one above 0",
            group, kind, flow.stage, flow.most_bytes_per_second);
  }
  require(network.speeds.empty() || network.speeds.size() == schedule.ranks.size() * network.replicas,
          "it has {} speeds for {} ranks: give one for each", network.speeds.size(),
          schedule.ranks.size() * network.replicas);
  for (const double speed : network.speeds) {
    require(speed > 0, "a rank has a speed of {}: give a share of the normal speed above 0", speed);
  }
  require(network.collective_slowdown >= 0, "the slowdown of compute beside collectives is {}: give 0 or more",
          network.collective_slowdown);
}

bool has_routes(const NetworkSpec& network) {
  const auto is_route = [](std::int32_t route) { return route != kNoRoute; };
  return std::ranges::any_of(network.activation_route, is_route) ||
         std::ranges::any_of(network.gradient_route, is_route) ||
         std::ranges::any_of(network.move_routes,
                             [&](const auto& routes) { return std::ranges::any_of(routes, is_route); }) ||
         std::ranges::any_of(network.collectives, is_route, &CollectiveFlow::route) ||
         std::ranges::any_of(network.inner, is_route, &InnerCollective::route);
}

double message_rate(const Schedule& schedule, const CostTable& costs, int stage, bool gradient) {
  const StagePlace& place = schedule.stages[stage];
  for (const StagePlace& other : schedule.stages) {
    if (other.lane == place.lane && other.model_part == place.model_part + (gradient ? -1 : 1))
      return link_between(costs, place.rank, other.rank).bytes_per_second;
  }
  return 0;
}

double move_rate(const CostTable& costs, const Action& move) {
  Seconds price{0};
  for (const Segment& segment : segments_of(costs, move)) price += segment.seconds;
  return price.count() > 0 ? static_cast<double>(costs.stages[move.stage].memory.forward_bytes) / price.count() : 0;
}

double collective_rate(const CollectiveFlow& flow, const CostTable& costs, const Action& action) {
  double bytes = 0;
  Seconds price{0};
  for (const Segment& segment : segments_of(costs, action)) {
    price += segment.seconds;
    if (segment.kind == Segment::Kind::kCollective) bytes += static_cast<double>(segment.bytes);
  }
  return price.count() > 0 ? flow.volume_ratio * bytes / price.count() : 0;
}

double inner_rate(const InnerCollective& flow, double buffer_bytes_per_second) {
  return std::min(flow.volume_ratio * buffer_bytes_per_second, flow.most_bytes_per_second);
}

}}  // namespace plumb::simulator
