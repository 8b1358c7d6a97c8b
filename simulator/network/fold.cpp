#include "simulator/network/fold.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/container_hash/hash.hpp>

namespace plumb { inline namespace simulator {
namespace {

/// The role of a flow, whatever its members and its way.
enum class Role : std::uint8_t { kChannel, kCollective, kInner };

struct Flow {
  Role role = Role::kChannel;
  std::int32_t source = 0;  ///< replica * stages + stage of a message or move, number of a collective
  std::int32_t route = kNoRoute;
  int table = 0;  ///< of a channel
  int what = 0;   ///< a number for each role, stage, table or operation or group and kind, volume
  std::span<const int> replicas;
};

struct NumberedFlows {
  std::vector<int> replicas;  ///< 0, 1, ...: those of channels point here
  std::vector<Flow> flows;
};

/// Returns the tables of messages and moves.
template <typename Network>
auto channel_tables(Network& network) {
  std::vector tables{&network.activation_route, &network.gradient_route};
  for (auto& routes : network.move_routes) tables.push_back(&routes);
  return tables;
}

/// Gives equal keys equal numbers, in the order in which they are first seen.
template <typename Key>
class Numbering {
 public:
  int of(const Key& key) { return numbers_.try_emplace(key, static_cast<int>(numbers_.size())).first->second; }
  int count() const { return static_cast<int>(numbers_.size()); }

 private:
  std::unordered_map<Key, int, boost::hash<Key>> numbers_;
};

NumberedFlows flows_of(const NetworkSpec& network, int stages) {
  Numbering<std::pair<double, double>> volumes;
  Numbering<std::array<int, 5>> whats;
  const auto code = [](auto value) { return static_cast<int>(value); };
  NumberedFlows numbered{.replicas = std::vector<int>(network.replicas)};
  std::iota(numbered.replicas.begin(), numbered.replicas.end(), 0);
  std::vector<Flow>& flows = numbered.flows;
  const auto tables = channel_tables(network);
  for (std::size_t table = 0; table < tables.size(); ++table) {
    const std::vector<std::int32_t>& routes = *tables[table];
    for (std::size_t i = 0; i < routes.size(); ++i) {
      flows.push_back({.role = Role::kChannel,
                       .source = static_cast<std::int32_t>(i),
                       .route = routes[i],
                       .table = code(table),
                       .what = whats.of({code(Role::kChannel), code(i) % stages, code(table), 0, 0}),
                       .replicas = {&numbered.replicas[i / stages], 1}});
    }
  }
  for (std::size_t i = 0; i < network.collectives.size(); ++i) {
    const CollectiveFlow& flow = network.collectives[i];
    flows.push_back(
        {.role = Role::kCollective,
         .source = static_cast<std::int32_t>(i),
         .route = flow.route,
         .what = whats.of({code(Role::kCollective), flow.stage, code(flow.op), 0, volumes.of({flow.volume_ratio, 0})}),
         .replicas = flow.replicas});
  }
  for (std::size_t i = 0; i < network.inner.size(); ++i) {
    const InnerCollective& flow = network.inner[i];
    flows.push_back({.role = Role::kInner,
                     .source = static_cast<std::int32_t>(i),
                     .route = flow.route,
                     .what = whats.of({code(Role::kInner), flow.stage, code(flow.group), code(flow.kind),
                                       volumes.of({flow.volume_ratio, flow.most_bytes_per_second})}),
                     .replicas = flow.replicas});
  }
  return numbered;
}

/// Returns the speeds of a replica's ranks.
std::vector<double> speeds_of(const NetworkSpec& network, int replica) {
  const auto ranks = static_cast<std::ptrdiff_t>(network.speeds.size()) / network.replicas;
  const auto first = network.speeds.begin() + replica * ranks;
  return {first, first + ranks};
}

/// Returns (class of flow, sum of its shares) by class, whatever the order of the shares.
std::vector<std::pair<int, double>> load_of(std::vector<std::pair<int, double>> shares) {
  std::ranges::sort(shares);
  std::vector<std::pair<int, double>> load;
  for (const auto& [flow, share] : shares) {
    if (load.empty() || load.back().first != flow) load.emplace_back(flow, 0.0);
    load.back().second += share;
  }
  return load;
}

/// Returns [link] the (route, share) of all routes that cross it.
std::vector<std::vector<std::pair<std::int32_t, double>>> crossings_of(const NetworkSpec& network) {
  std::vector<std::vector<std::pair<std::int32_t, double>>> crossings(network.links.size());
  for (std::size_t r = 0; r < network.routes.size(); ++r) {
    for (const LinkUse& use : network.routes[r].uses)
      crossings[use.link].emplace_back(static_cast<std::int32_t>(r), use.share);
  }
  return crossings;
}

/// Splits classes until they are equitable.
AlikeClasses refine(const NetworkSpec& network, const std::vector<Flow>& flows, const std::vector<int>& kinds) {
  AlikeClasses classes{.of_flow = std::vector<int>(flows.size())};
  Numbering<std::pair<int, std::vector<double>>> speeds;
  for (int k = 0; k < network.replicas; ++k)
    classes.of_replica.push_back(speeds.of({kinds.empty() ? 0 : kinds[k], speeds_of(network, k)}));
  classes.replicas = speeds.count();
  Numbering<double> capacities;
  for (const NetworkLink& link : network.links) classes.of_link.push_back(capacities.of(link.bytes_per_second));
  classes.links = capacities.count();
  const auto crossings = crossings_of(network);
  std::vector<std::vector<std::int32_t>> flows_on(network.routes.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (flows[f].route != kNoRoute) flows_on[flows[f].route].push_back(static_cast<std::int32_t>(f));
  }

  for (;;) {
    Numbering<std::pair<double, std::vector<std::pair<int, double>>>> ways;  // by weight and (class of link, share)
    std::vector<int> way_of(network.routes.size());
    for (std::size_t r = 0; r < network.routes.size(); ++r) {
      std::vector<std::pair<int, double>> crossed;
      for (const LinkUse& use : network.routes[r].uses) crossed.emplace_back(classes.of_link[use.link], use.share);
      std::ranges::sort(crossed);
      way_of[r] = ways.of({network.routes[r].weight, std::move(crossed)});
    }
    Numbering<std::vector<int>> of_flow;
    std::vector<std::vector<int>> of_replica(network.replicas);
    std::vector<int> key;  // what it is, its way, and its members
    for (std::size_t f = 0; f < flows.size(); ++f) {
      key.assign({flows[f].what, flows[f].route == kNoRoute ? -1 : way_of[flows[f].route]});
      const auto members = std::ssize(key);
      for (const int replica : flows[f].replicas) key.push_back(classes.of_replica[replica]);
      std::sort(key.begin() + members, key.end());
      classes.of_flow[f] = of_flow.of(key);
      for (const int replica : flows[f].replicas) of_replica[replica].push_back(classes.of_flow[f]);
    }
    classes.flows = of_flow.count();

    Numbering<std::pair<int, std::vector<int>>> next_replicas;
    for (int k = 0; k < network.replicas; ++k) {
      std::ranges::sort(of_replica[k]);
      classes.of_replica[k] = next_replicas.of({classes.of_replica[k], std::move(of_replica[k])});
    }
    Numbering<std::pair<int, std::vector<std::pair<int, double>>>> next_links;
    for (std::size_t l = 0; l < network.links.size(); ++l) {
      std::vector<std::pair<int, double>> shares;
      for (const auto& [route, share] : crossings[l]) {
        for (const std::int32_t flow : flows_on[route]) shares.emplace_back(classes.of_flow[flow], share);
      }
      classes.of_link[l] = next_links.of({classes.of_link[l], load_of(std::move(shares))});
    }
    const bool stable = next_replicas.count() == classes.replicas && next_links.count() == classes.links;
    classes.replicas = next_replicas.count();
    classes.links = next_links.count();
    if (stable) return classes;
  }
}

}  // namespace

AlikeClasses alike_classes(const NetworkSpec& network, int stages, const std::vector<int>& kinds) {
  if (network.replicas == 1) return {.of_replica = {0}, .replicas = 1};
  return refine(network, flows_of(network, stages).flows, kinds);
}

Fold folded(const NetworkSpec& network, int stages) {
  return folded(network, stages, alike_classes(network, stages));
}

Fold folded(const NetworkSpec& network, int stages, const AlikeClasses& classes) {
  std::vector<int> all(network.replicas);
  std::iota(all.begin(), all.end(), 0);
  if (network.replicas == 1) return {.network = network, .first_replica = all};
  const NumberedFlows numbered = flows_of(network, stages);
  const std::vector<Flow>& flows = numbered.flows;
  if (classes.replicas == network.replicas) return {.network = network, .first_replica = all};

  Fold fold{.network = {.replicas = classes.replicas, .collective_slowdown = network.collective_slowdown}};
  NetworkSpec& one = fold.network;
  for (int k = 0; k < network.replicas; ++k) {
    if (classes.of_replica[k] < static_cast<int>(fold.first_replica.size())) continue;
    fold.first_replica.push_back(k);
    const std::vector<double> speeds = speeds_of(network, k);
    one.speeds.insert(one.speeds.end(), speeds.begin(), speeds.end());
  }
  std::vector<int> first_link(classes.links, -1);
  for (std::size_t l = 0; l < network.links.size(); ++l) {
    if (first_link[classes.of_link[l]] >= 0) continue;
    first_link[classes.of_link[l]] = static_cast<int>(l);
    one.links.push_back(network.links[l]);
  }

  // These are the shares that each class of flows takes of one link of each class.
  std::vector<std::vector<std::pair<int, double>>> shares(classes.links);  // [class of link] by class of flow
  for (const Flow& flow : flows) {
    if (flow.route == kNoRoute) continue;
    const int own = classes.of_flow[&flow - flows.data()];
    for (const LinkUse& use : network.routes[flow.route].uses) {
      const int link = classes.of_link[use.link];
      if (first_link[link] == use.link) shares[link].emplace_back(own, use.share);
    }
  }
  std::vector<std::int32_t> route_of(classes.flows, kNoRoute);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    std::int32_t& route = route_of[classes.of_flow[f]];
    if (flows[f].route == kNoRoute || route != kNoRoute) continue;
    route = static_cast<std::int32_t>(one.routes.size());
    one.routes.push_back({.weight = network.routes[flows[f].route].weight});
  }
  for (int link = 0; link < classes.links; ++link) {
    for (const auto& [flow, share] : load_of(std::move(shares[link])))
      one.routes[route_of[flow]].uses.push_back({link, share});
  }

  const auto standing_for = [&](std::span<const int> replicas) {
    std::set<int> members;
    for (const int replica : replicas) members.insert(classes.of_replica[replica]);
    return std::vector<int>(members.begin(), members.end());
  };
  const auto tables = channel_tables(network);
  const auto folded_tables = channel_tables(one);
  for (std::size_t table = 0; table < tables.size(); ++table) {
    if (!tables[table]->empty()) folded_tables[table]->resize(std::size_t(classes.replicas) * stages);
  }
  std::set<int> taken;  // classes of collectives
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const Flow& flow = flows[f];
    const std::int32_t route = route_of[classes.of_flow[f]];
    if (flow.role == Role::kChannel) {
      std::vector<std::int32_t>& routes = *folded_tables[flow.table];
      routes[std::size_t(classes.of_replica[flow.replicas.front()]) * stages + flow.source % stages] = route;
    } else if (taken.insert(classes.of_flow[f]).second) {
      if (flow.role == Role::kCollective) {
        one.collectives.push_back(network.collectives[flow.source]);
        one.collectives.back().replicas = standing_for(flow.replicas);
        one.collectives.back().route = route;
      } else {
        one.inner.push_back(network.inner[flow.source]);
        one.inner.back().replicas = standing_for(flow.replicas);
        one.inner.back().route = route;
      }
    }
  }
  return fold;
}

}}  // namespace plumb::simulator
