#include "simulator/network/fold.h"

#include <algorithm>
#include <map>
#include <utility>

namespace plumb {
namespace {

using Load = std::pair<int, double>;  ///< class of flows, total share on a link

/// The flows of all replicas by class. Classes: activations by stage, gradients by stage, then (op, stage).
struct Members {
  std::vector<std::vector<std::int32_t>> routes;  ///< [class] routes of its members
};

Members members_of(const NetworkSpec& network, int stages) {
  Members members;
  members.routes.resize(static_cast<std::size_t>(4 * stages));
  for (int k = 0; k < network.replicas; ++k) {
    for (int s = 0; s < stages; ++s) {
      const std::size_t at = static_cast<std::size_t>(k) * stages + s;
      if (!network.activation_route.empty()) members.routes[s].push_back(network.activation_route[at]);
      if (!network.gradient_route.empty()) members.routes[stages + s].push_back(network.gradient_route[at]);
    }
  }
  for (const CollectiveFlow& flow : network.collectives) {
    members.routes[(flow.op == Op::kReduceGrad ? 2 : 3) * stages + flow.stage].push_back(flow.route);
  }
  return members;
}

/// True if every rank has the same speed in all replicas.
bool equal_speeds(const NetworkSpec& network) {
  const std::size_t ranks = network.speeds.size() / network.replicas;
  for (std::size_t i = ranks; i < network.speeds.size(); ++i) {
    if (network.speeds[i] != network.speeds[i % ranks]) return false;
  }
  return true;
}

/// True if the collectives of every stage cover all replicas, each in one group, and have equal volumes.
bool equal_groups(const NetworkSpec& network) {
  std::map<std::pair<Op, int>, std::pair<std::size_t, double>> covered;
  for (const CollectiveFlow& flow : network.collectives) {
    auto& [replicas, volume] =
        covered.try_emplace({flow.op, flow.stage}, std::size_t{0}, flow.volume_ratio).first->second;
    replicas += flow.replicas.size();
    if (volume != flow.volume_ratio) return false;
  }
  return std::ranges::all_of(
      covered, [&](const auto& entry) { return entry.second.first == static_cast<std::size_t>(network.replicas); });
}

}  // namespace

std::optional<NetworkSpec> folded(const NetworkSpec& network, int stages) {
  if (network.replicas == 1) return network;
  if (!equal_speeds(network) || !equal_groups(network)) return std::nullopt;
  const Members members = members_of(network, stages);

  // [link] what each class takes of it.
  std::vector<std::vector<Load>> loads(network.links.size());
  for (std::size_t c = 0; c < members.routes.size(); ++c) {
    for (const std::int32_t route : members.routes[c]) {
      if (route == kNoRoute) continue;
      for (const LinkUse& use : network.routes[route].uses) {
        std::vector<Load>& load = loads[use.link];
        if (load.empty() || load.back().first != static_cast<int>(c)) load.emplace_back(static_cast<int>(c), 0.0);
        load.back().second += use.share;
      }
    }
  }
  NetworkSpec fold{.replicas = 1, .collective_slowdown = network.collective_slowdown};
  std::map<std::pair<double, std::vector<Load>>, int> link_classes;
  std::vector<int> class_of_link(network.links.size(), -1);
  for (std::size_t l = 0; l < network.links.size(); ++l) {
    if (loads[l].empty()) continue;
    const auto [it, added] =
        link_classes.try_emplace({network.links[l].bytes_per_second, loads[l]}, static_cast<int>(fold.links.size()));
    if (added) fold.links.push_back(network.links[l]);
    class_of_link[l] = it->second;
  }

  // Every member of a class crosses the same classes of links in the same shares, with the same weight.
  using Crossing = std::pair<double, std::vector<std::pair<int, double>>>;
  const auto crossing_of = [&](std::int32_t route) {
    Crossing crossing;
    if (route == kNoRoute) return crossing;
    crossing.first = network.routes[route].weight;
    for (const LinkUse& use : network.routes[route].uses)
      crossing.second.emplace_back(class_of_link[use.link], use.share);
    std::ranges::sort(crossing.second);
    return crossing;
  };
  std::vector<std::int32_t> route_of_class(members.routes.size(), kNoRoute);
  for (std::size_t c = 0; c < members.routes.size(); ++c) {
    if (members.routes[c].empty()) continue;
    const Crossing first = crossing_of(members.routes[c].front());
    for (const std::int32_t route : members.routes[c]) {
      if (crossing_of(route) != first) return std::nullopt;
    }
    if (members.routes[c].front() == kNoRoute) continue;
    route_of_class[c] = static_cast<std::int32_t>(fold.routes.size());
    fold.routes.push_back({.weight = first.first});
  }
  for (const auto& [key, link] : link_classes) {
    for (const auto& [c, share] : key.second) fold.routes[route_of_class[c]].uses.push_back({link, share});
  }
  for (Route& route : fold.routes) std::ranges::sort(route.uses, {}, &LinkUse::link);

  const auto routes_of = [&](int first_class) {
    return std::vector<std::int32_t>(route_of_class.begin() + first_class,
                                     route_of_class.begin() + first_class + stages);
  };
  if (!network.activation_route.empty()) fold.activation_route = routes_of(0);
  if (!network.gradient_route.empty()) fold.gradient_route = routes_of(stages);
  for (const CollectiveFlow& flow : network.collectives) {
    if (flow.replicas.front() != 0) continue;
    CollectiveFlow one = flow;
    one.replicas = {0};
    one.route = route_of_class[(flow.op == Op::kReduceGrad ? 2 : 3) * stages + flow.stage];
    fold.collectives.push_back(one);
  }
  fold.speeds.assign(network.speeds.begin(),
                     network.speeds.begin() + static_cast<std::ptrdiff_t>(network.speeds.size() / network.replicas));
  return fold;
}

}  // namespace plumb
