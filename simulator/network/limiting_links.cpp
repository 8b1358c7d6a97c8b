#include "simulator/network/limiting_links.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace simulator {
namespace {

constexpr double kAskedTolerance = 1e-9;

/// The rate of the fastest transfer of each channel. Channels that follow one route in one direction (or collectives of
/// one kind) are one channel.
using RateOfChannel = std::map<Op, std::vector<double>>;  // [route]; 0: no channel follows it

void raise(RateOfChannel& rates, Op op, std::int32_t route, double rate) {
  if (route == kNoRoute || rate <= 0) return;
  if (!std::isfinite(rate)) {
    throw SpecError(
        fmt::format("the network of the simulation: {} has a route, but the cost table gives its link no "
                    "bandwidth: give one",
                    op_name(op)));
  }
  std::vector<double>& most = rates[op];
  most.resize(std::max(most.size(), static_cast<std::size_t>(route) + 1));
  most[route] = std::max(most[route], rate);
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
  for (const Op op : {Op::kOffload, Op::kReload, Op::kEvict, Op::kLoad}) {
    const std::vector<std::int32_t>& routes = network.move_routes[move_number(op)];
    for (std::size_t i = 0; i < routes.size(); ++i) {
      if (routes[i] == kNoRoute) continue;
      const auto stage = static_cast<int>(i % std::max<std::size_t>(1, stages));
      const std::size_t parts = costs.stages[stage].segments[static_cast<std::size_t>(op)].size();
      for (std::size_t part = 0; part < parts; ++part)
        raise(rates, op, routes[i],
              move_rate(costs, {.op = op, .part = static_cast<std::int16_t>(part), .stage = stage}));
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

/// Returns the rate of the fastest collective of each InnerCollective among the actions of its stage: [0] for those
/// that block them, [1] for those beside their compute.
std::array<double, 2> inner_rates(const InnerCollective& flow, const CostTable& costs) {
  std::array<double, 2> most{};
  for (const SegmentsByPart& parts : costs.stages[flow.stage].segments) {
    for (const std::vector<Segment>& segments : parts) {
      for (const Segment& segment : segments) {
        if (segment.kind != Segment::Kind::kCollective || segment.group != flow.group ||
            segment.collective != flow.kind)
          continue;
        if (!(segment.seconds.count() > 0)) continue;
        double& rate = most[segment.beside ? 1 : 0];
        rate = std::max(rate, inner_rate(flow, static_cast<double>(segment.bytes) / segment.seconds.count()));
      }
    }
  }
  return most;
}

/// The rate that the collectives inside actions can ask of one link at a time.
class InnerDemand {
 public:
  void add(const std::vector<int>& members, double bytes_per_second) {
    most_ = std::max(most_, bytes_per_second);
    sum_ += bytes_per_second;
    if (first_ == nullptr) first_ = &members;
    if (&members == first_ || members == *first_) return;
    std::vector<int> both;
    std::ranges::set_intersection(common(), members, std::back_inserter(both));
    others_ = std::move(both);
  }

  double bytes_per_second() const { return common().empty() ? sum_ : most_; }

 private:
  /// Returns the replicas of one rank that take part in all of them, and so in one after the other.
  const std::vector<int>& common() const { return others_ ? *others_ : *first_; }

  const std::vector<int>* first_ = nullptr;  ///< members of the first
  std::optional<std::vector<int>> others_;   ///< what it has in common with others, if these are not the same
  double most_ = 0;
  double sum_ = 0;
};

/// A collective inside actions on one of its links, with the share of it that it uses.
struct InnerUse {
  std::uint32_t flow = 0;  ///< of the network's
  int beside = 0;
  double share = 0;
};

/// The uses of all links, which are very many with a few uses each: they are counted, not compared.
class UsesOfLinks {
 public:
  /// [flow] its rates; those that are 0 use nothing.
  UsesOfLinks(const NetworkSpec& network, const std::vector<std::array<double, 2>>& rates)
      : end_(network.links.size() + 1, 0) {
    const auto visit = [&](const auto& each) {
      for (std::size_t flow = 0; flow < network.inner.size(); ++flow) {
        const std::int32_t route = network.inner[flow].route;
        for (int beside = 0; beside < 2; ++beside) {
          if (route == kNoRoute || rates[flow][static_cast<std::size_t>(beside)] == 0) continue;
          for (const LinkUse& use : network.routes[route].uses)
            each(static_cast<std::size_t>(use.link),
                 InnerUse{.flow = static_cast<std::uint32_t>(flow), .beside = beside, .share = use.share});
        }
      }
    };
    visit([&](std::size_t link, const InnerUse&) { ++end_[link + 1]; });
    std::partial_sum(end_.begin(), end_.end(), end_.begin());
    uses_.resize(end_.back());
    visit(
        [&](std::size_t link, const InnerUse& use) { uses_[end_[link]++] = use; });  // which ends where the next began
  }

  std::span<InnerUse> of(std::size_t link) {
    const std::size_t first = link == 0 ? 0 : end_[link - 1];
    return std::span(uses_).subspan(first, end_[link] - first);
  }

 private:
  std::vector<std::size_t> end_;  ///< [link] behind its last use
  std::vector<InnerUse> uses_;
};

void add_inner_demand(std::vector<double>& asked, const NetworkSpec& network, const Schedule& schedule,
                      const CostTable& costs) {
  std::vector<std::array<double, 2>> rates;
  rates.reserve(network.inner.size());
  for (const InnerCollective& flow : network.inner) rates.push_back(inner_rates(flow, costs));
  UsesOfLinks uses(network, rates);
  const auto place = [&](const InnerUse& use) {
    return std::pair(schedule.stages[network.inner[use.flow].stage].rank, use.beside);
  };
  for (std::size_t link = 0; link < asked.size(); ++link) {
    const std::span<InnerUse> of_link = uses.of(link);
    std::ranges::sort(of_link, {}, [&](const InnerUse& use) { return std::pair(place(use), use.flow); });
    for (auto first = of_link.begin(); first != of_link.end();) {
      InnerDemand demand;
      auto use = first;
      for (; use != of_link.end() && place(*use) == place(*first); ++use)
        demand.add(network.inner[use->flow].replicas,
                   rates[use->flow][static_cast<std::size_t>(use->beside)] * use->share);
      asked[link] += demand.bytes_per_second();
      first = use;
    }
  }
}

}  // namespace

std::vector<bool> limiting_links(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs) {
  std::vector<double> asked(network.links.size(), 0.0);
  for (const auto& [op, rates] : channel_rates(network, lowered, costs)) {
    for (std::size_t route = 0; route < rates.size(); ++route) {
      if (rates[route] == 0) continue;
      for (const LinkUse& use : network.routes[route].uses) asked[use.link] += rates[route] * use.share;
    }
  }
  add_inner_demand(asked, network, lowered, costs);
  std::vector<bool> limiting;
  for (std::size_t l = 0; l < network.links.size(); ++l)
    limiting.push_back(asked[l] > network.links[l].bytes_per_second * (1 + kAskedTolerance));
  return limiting;
}

NetworkSpec with_links(const NetworkSpec& network, const std::vector<bool>& kept) {
  NetworkSpec limiting{.replicas = network.replicas,
                       .activation_route = network.activation_route,
                       .gradient_route = network.gradient_route,
                       .move_routes = network.move_routes,
                       .collectives = network.collectives,
                       .inner = network.inner,
                       .speeds = network.speeds,
                       .collective_slowdown = network.collective_slowdown};
  std::vector<std::int32_t> number(network.links.size(), -1);
  for (std::size_t l = 0; l < network.links.size(); ++l) {
    if (!kept[l]) continue;
    number[l] = static_cast<std::int32_t>(limiting.links.size());
    limiting.links.push_back(network.links[l]);
  }
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
  for (auto& routes : limiting.move_routes) std::ranges::for_each(routes, renumber);
  for (CollectiveFlow& flow : limiting.collectives) renumber(flow.route);
  for (InnerCollective& flow : limiting.inner) renumber(flow.route);
  return limiting;
}

NetworkSpec with_limiting_links(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs) {
  return with_links(network, limiting_links(network, lowered, costs));
}

}}  // namespace plumb::simulator
