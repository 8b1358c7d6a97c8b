#include "simulator/network/network_spec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb {
namespace {

constexpr double kFullTolerance = 1e-9;

void require(bool holds, const std::string& message) {
  if (!holds) throw SpecError("the network of the simulation: " + message);
}

/// The fastest transfer of each channel. Channels that follow one route in one direction (or collectives of one kind)
/// are one channel.
using RateOfChannel = std::map<std::pair<Op, std::int32_t>, double>;

void raise(RateOfChannel& rates, Op op, std::int32_t route, double rate) {
  if (route == kNoRoute || rate <= 0) return;
  require(std::isfinite(rate),
          fmt::format("{} has a route, but the cost table gives its link no bandwidth: give one", op_name(op)));
  double& most = rates[{op, route}];
  most = std::max(most, rate);
}

RateOfChannel channel_rates(const NetworkSpec& network, const Schedule& schedule, const CostTable& costs) {
  RateOfChannel rates;
  const std::size_t stages = schedule.stages.size();
  for (std::size_t stage = 0; stage < stages; ++stage) {
    for (const bool gradient : {false, true}) {
      const std::vector<std::int32_t>& routes = gradient ? network.gradient_route : network.activation_route;
      const StageCosts& stage_costs = costs.stages[stage];
      if (routes.empty() || (gradient ? stage_costs.gradient_message_bytes : stage_costs.activation_message_bytes) == 0)
        continue;
      const double rate = message_rate(schedule, costs, static_cast<int>(stage), gradient);
      for (int replica = 0; replica < network.replicas; ++replica) {
        raise(rates, gradient ? Op::kSendGradient : Op::kSendActivation, routes[replica * stages + stage], rate);
      }
    }
  }
  for (const CollectiveFlow& flow : network.collectives) {
    const std::size_t parts = costs.stages[flow.stage].segments[static_cast<std::size_t>(flow.op)].size();
    for (std::size_t part = 0; part < parts; ++part) {
      const Action action{.op = flow.op, .part = static_cast<std::int16_t>(part), .stage = flow.stage};
      raise(rates, flow.op, flow.route, collective_rate(flow, costs, action));
    }
  }
  return rates;
}

}  // namespace

void check_network(const NetworkSpec& network, const Schedule& schedule) {
  const std::size_t stages = schedule.stages.size();
  require(network.replicas > 0, fmt::format("it has {} replicas: give 1 or more", network.replicas));
  for (const NetworkLink& link : network.links) {
    require(link.bytes_per_second > 0,
            fmt::format("link {} has a capacity of {} bytes/s: give one above 0", link.name, link.bytes_per_second));
  }
  for (const Route& route : network.routes) {
    require(route.weight > 0, fmt::format("a route has a weight of {}: give one above 0", route.weight));
    for (const LinkUse& use : route.uses) {
      require(use.link >= 0 && use.link < static_cast<int>(network.links.size()),
              fmt::format("a route crosses link {}, but there are {} links", use.link, network.links.size()));
      require(use.share > 0, fmt::format("a route takes a share of {} of link {}: give one above 0", use.share,
                                         network.links[use.link].name));
    }
  }
  const auto check_route = [&](std::int32_t route) {
    require(route >= kNoRoute && route < static_cast<int>(network.routes.size()),
            fmt::format("route {} is named, but there are {} routes", route, network.routes.size()));
  };
  for (const auto* routes : {&network.activation_route, &network.gradient_route}) {
    require(routes->empty() || routes->size() == stages * network.replicas,
            fmt::format("it has routes for {} stages of replicas, the schedule {}: give one for each", routes->size(),
                        stages * network.replicas));
    std::ranges::for_each(*routes, check_route);
  }
  for (const CollectiveFlow& flow : network.collectives) {
    check_route(flow.route);
    require(flow.stage >= 0 && flow.stage < static_cast<int>(stages),
            fmt::format("a collective is of stage {}, but the schedule has {} stages", flow.stage, stages));
    require(is_collective(flow.op), fmt::format("{} is no collective: give UNSHARD or REDUCE_GRAD", op_name(flow.op)));
    require(!flow.replicas.empty() && std::ranges::is_sorted(flow.replicas) && flow.replicas.front() >= 0 &&
                flow.replicas.back() < network.replicas,
            fmt::format("the {} of stage {} is not of replicas 0 to {}, ascending", op_name(flow.op), flow.stage,
                        network.replicas - 1));
  }
  require(network.speeds.empty() || network.speeds.size() == schedule.ranks.size() * network.replicas,
          fmt::format("it has {} speeds for {} ranks: give one for each", network.speeds.size(),
                      schedule.ranks.size() * network.replicas));
  for (const double speed : network.speeds) {
    require(speed > 0, fmt::format("a rank has a speed of {}: give a share of the normal speed above 0", speed));
  }
  require(network.collective_slowdown >= 0,
          fmt::format("the slowdown of compute beside collectives is {}: give 0 or more", network.collective_slowdown));
}

NetworkSpec with_limiting_links(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs) {
  std::vector<double> asked(network.links.size(), 0.0);
  for (const auto& [channel, rate] : channel_rates(network, lowered, costs)) {
    for (const LinkUse& use : network.routes[channel.second].uses) asked[use.link] += rate * use.share;
  }
  NetworkSpec limiting = network;
  limiting.links.clear();
  std::vector<std::int32_t> number(network.links.size(), -1);
  for (std::size_t l = 0; l < network.links.size(); ++l) {
    if (asked[l] <= network.links[l].bytes_per_second * (1 + kFullTolerance)) continue;
    number[l] = static_cast<std::int32_t>(limiting.links.size());
    limiting.links.push_back(network.links[l]);
  }
  limiting.routes.clear();
  std::vector<std::int32_t> route_number(network.routes.size(), kNoRoute);
  for (std::size_t r = 0; r < network.routes.size(); ++r) {
    Route route{.weight = network.routes[r].weight};
    for (const LinkUse& use : network.routes[r].uses) {
      if (number[use.link] >= 0) route.uses.push_back({number[use.link], use.share});
    }
    if (route.uses.empty()) continue;
    route_number[r] = static_cast<std::int32_t>(limiting.routes.size());
    limiting.routes.push_back(std::move(route));
  }
  const auto renumber = [&](std::int32_t& route) { route = route == kNoRoute ? kNoRoute : route_number[route]; };
  std::ranges::for_each(limiting.activation_route, renumber);
  std::ranges::for_each(limiting.gradient_route, renumber);
  for (CollectiveFlow& flow : limiting.collectives) renumber(flow.route);
  return limiting;
}

bool has_routes(const NetworkSpec& network) {
  const auto is_route = [](std::int32_t route) { return route != kNoRoute; };
  return std::ranges::any_of(network.activation_route, is_route) ||
         std::ranges::any_of(network.gradient_route, is_route) ||
         std::ranges::any_of(network.collectives, is_route, &CollectiveFlow::route);
}

double message_rate(const Schedule& schedule, const CostTable& costs, int stage, bool gradient) {
  const StagePlace& place = schedule.stages[stage];
  for (const StagePlace& other : schedule.stages) {
    if (other.lane == place.lane && other.model_part == place.model_part + (gradient ? -1 : 1))
      return link_between(costs, place.rank, other.rank).bytes_per_second;
  }
  return 0;
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

}  // namespace plumb
