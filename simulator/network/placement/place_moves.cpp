#include "simulator/network/placement/place_moves.h"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace simulator {
namespace {

class MovePlacer {
 public:
  MovePlacer(NetworkSpec placed, const Fabric& fabric, const HostLinks& host, const ProcessGrid& grid,
             const Schedule& lowered)
      : network_(std::move(placed)), fabric_(fabric), host_(host), grid_(grid), schedule_(lowered) {}

  NetworkSpec place() {
    std::set<std::pair<Op, std::int32_t>> moves;
    for (const auto& actions : schedule_.ranks) {
      for (const Action& action : actions) {
        if (is_move(action.op)) moves.emplace(action.op, action.stage);
      }
    }
    for (const auto& [op, stage] : moves) place_moves(op, stage);
    return std::move(network_);
  }

 private:
  void place_moves(Op op, int stage) {
    const bool to_host = op == Op::kOffload || op == Op::kReload;
    if (to_host) check_host();
    std::vector<std::int32_t>& routes = network_.move_routes[move_number(op)];
    routes.resize(schedule_.stages.size() * network_.replicas, kNoRoute);
    const int rank = schedule_.stages[stage].rank;
    const int partner = static_cast<int>(schedule_.ranks.size()) - 1 - rank;
    for (int k = 0; k < network_.replicas; ++k) {
      const int device = device_of(grid_, rank * network_.replicas + k);
      routes[schedule_.stages.size() * k + stage] =
          to_host ? host_route(op, device)
                  : partner_route(op, device, device_of(grid_, partner * network_.replicas + k));
    }
  }

  void check_host() const {
    for (const double rate : {host_.device_bytes_per_second, host_.memory_bytes_per_second}) {
      if (rate > 0) continue;
      throw SpecError(
          fmt::format("the host of a node moves {} bytes/s, and activations are offloaded to it: give its memory "
                      "and each device's link to it a rate above 0",
                      rate));
    }
    if (host_.devices_per_switch < 1) {
      throw SpecError(fmt::format("{} devices share a switch to their host: give 1 or more", host_.devices_per_switch));
    }
  }

  std::int32_t host_route(Op op, int device) {
    const auto [it, added] = routes_.try_emplace({op, device}, static_cast<std::int32_t>(network_.routes.size()));
    if (!added) return it->second;
    const char* way = op == Op::kOffload ? "up" : "down";
    const int node = device / host_.devices_per_node;
    Route route;
    route.uses.push_back(device_link(way, device));
    if (host_.devices_per_switch > 1) {
      const int number = device % host_.devices_per_node / host_.devices_per_switch;
      route.uses.push_back(
          {link_named(fmt::format("switch_{}:node{}.{}", way, node, number), host_.device_bytes_per_second), 1});
    }
    route.uses.push_back({link_named(fmt::format("host_memory:node{}", node), host_.memory_bytes_per_second), 1});
    network_.routes.push_back(std::move(route));
    return it->second;
  }

  LinkUse device_link(const char* way, int device) {
    const double rate = host_.device_bytes_per_second;
    if (host_.link == DeviceLink::kOwn) return {link_named(fmt::format("host_{}:rank{}", way, device), rate), 1};
    const std::string name =
        fmt::format("{}_{}:rank{}", host_.link == DeviceLink::kPort ? "port" : "attachment", way, device);
    const std::int32_t link = link_named(name, rate);
    const double capacity = network_.links[link].bytes_per_second;
    return {link, std::isfinite(capacity) ? capacity / rate : 1};
  }

  std::int32_t link_named(const std::string& name, double bytes_per_second) {
    if (numbers_.empty()) {
      for (std::size_t l = 0; l < network_.links.size(); ++l)
        numbers_.emplace(network_.links[l].name, static_cast<std::int32_t>(l));
    }
    const auto [it, added] = numbers_.try_emplace(name, static_cast<std::int32_t>(network_.links.size()));
    if (added) network_.links.push_back({name, bytes_per_second});
    return it->second;
  }

  std::int32_t partner_route(Op op, int device, int partner) {
    if (device == partner) return kNoRoute;
    const auto [it, added] = routes_.try_emplace({op, device}, static_cast<std::int32_t>(network_.routes.size()));
    if (!added) return it->second;
    std::map<int, double> shares;
    const bool away = op == Op::kEvict;
    for (const int link : fabric_.path(away ? device : partner, away ? partner : device)) shares[link] += 1;
    Route route;
    for (const auto& [link, share] : shares) route.uses.push_back({link, share});
    network_.routes.push_back(std::move(route));
    return it->second;
  }

  NetworkSpec network_;
  const Fabric& fabric_;
  const HostLinks& host_;
  const ProcessGrid& grid_;
  const Schedule& schedule_;
  std::map<std::string, std::int32_t> numbers_;        ///< links by name
  std::map<std::pair<Op, int>, std::int32_t> routes_;  ///< by move and device
};

}  // namespace

NetworkSpec with_moves(NetworkSpec placed, const Fabric& fabric, const HostLinks& host, const ProcessGrid& grid,
                       const Schedule& lowered) {
  return MovePlacer(std::move(placed), fabric, host, grid, lowered).place();
}

}}  // namespace plumb::simulator
