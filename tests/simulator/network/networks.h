#pragma once
// Networks by hand, which the tests of the event engine share.

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "schedules/passes/lower.h"
#include "simulator/network/simulate_network.h"
#include "simulator/network/topology/fabric.h"
#include "tests/simulator/support.h"

namespace plumb::test {

/// Every channel has a link of its own, exactly as fast as it asks, and so has every collective, with room for more
/// inside actions, where one may block the action and another run beside it. Nothing shares, but everything is a flow.
inline NetworkSpec private_links(const Schedule& schedule, const CostTable& costs) {
  NetworkSpec network;
  const auto route = [&](double rate) {
    network.routes.push_back({.uses = {{static_cast<std::int32_t>(network.links.size()), 1}}});
    network.links.push_back({"private", rate});
    return static_cast<std::int32_t>(network.routes.size()) - 1;
  };
  const StageNeighbors neighbors = stage_neighbors(schedule);
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    for (const bool gradient : {false, true}) {
      const int other = (gradient ? neighbors.predecessor : neighbors.successor)[s];
      const bool leaves = other >= 0 && schedule.stages[other].rank != schedule.stages[s].rank;
      (gradient ? network.gradient_route : network.activation_route)
          .push_back(leaves ? route(message_rate(schedule, costs, static_cast<int>(s), gradient)) : kNoRoute);
    }
    for (const Op op : {Op::kUnshard, Op::kReduceGrad}) {
      CollectiveFlow flow{.op = op, .stage = static_cast<int>(s), .replicas = {0}};
      const double rate = collective_rate(flow, costs, {.op = op, .stage = static_cast<int>(s)});
      if (rate > 0) flow.route = route(rate);
      network.collectives.push_back(flow);
    }
    std::set<std::pair<Group, CollectiveKind>> inner;
    for (const SegmentsByPart& parts : costs.stages[s].segments) {
      for (const auto& segments : parts) {
        for (const Segment& segment : segments) {
          if (segment.kind == Segment::Kind::kCollective && segment.group != Group::kData)
            inner.emplace(segment.group, segment.collective);
        }
      }
    }
    for (const auto& [group, kind] : inner) {
      network.inner.push_back(
          {.group = group, .kind = kind, .stage = static_cast<int>(s), .replicas = {0}, .route = route(1e18)});
    }
  }
  for (const Op op : {Op::kOffload, Op::kReload, Op::kEvict, Op::kLoad}) {
    for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
      const double rate = move_rate(costs, {.op = op, .stage = static_cast<std::int32_t>(s)});
      network.move_routes[move_number(op)].push_back(rate > 0 ? route(rate) : kNoRoute);
    }
  }
  return network;
}

/// Returns a network in which every message of every rank crosses one link, there and back.
inline NetworkSpec one_trunk(const Schedule& schedule, double bytes_per_second) {
  NetworkSpec network{.links = {{"trunk", bytes_per_second}}, .routes = {{.uses = {{0, 1}}}}};
  network.activation_route.assign(schedule.stages.size(), 0);
  network.gradient_route.assign(schedule.stages.size(), 0);
  return network;
}

/// Gives REDUCE_GRAD and UNSHARD of every stage an all-reduce and an all-gather of that many bytes and seconds.
inline void price_collectives(CostTable& costs, std::int64_t bytes, Seconds seconds) {
  for (StageCosts& stage : costs.stages) {
    for (const Op op : {Op::kUnshard, Op::kReduceGrad}) {
      stage.segments[static_cast<std::size_t>(op)] = {
          {Segment{.kind = Segment::Kind::kCollective,
                   .seconds = seconds,
                   .group = Group::kData,
                   .collective = op == Op::kUnshard ? CollectiveKind::kAllGather : CollectiveKind::kAllReduce,
                   .bytes = bytes}}};
    }
  }
}

/// Puts collectives of three groups inside every F, B, I, W and R: some block, some run beside; all last whole
/// picoseconds.
inline void add_inner_collectives(CostTable& costs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (StageCosts& stage : costs.stages) {
    for (const Op op : {Op::kForward, Op::kBackward, Op::kInputGrad, Op::kWeightGrad, Op::kRecompute}) {
      auto& segments = stage.segments[static_cast<std::size_t>(op)].front();
      for (const Group group : {Group::kTensor, Group::kContext, Group::kExpert}) {
        segments.push_back(
            {.kind = Segment::Kind::kCollective,
             .seconds = Seconds{static_cast<double>(random() % 300) * 1e-12},
             .beside = random() % 2 == 0,
             .group = group,
             .collective = group == Group::kExpert ? CollectiveKind::kAllToAll : CollectiveKind::kAllReduce,
             .bytes = static_cast<std::int64_t>(1 + random() % 1000)});
      }
      if (random() % 2 == 0) segments.push_back({.seconds = Seconds{static_cast<double>(random() % 50) * 1e-12}});
    }
  }
}

/// Returns the uses of a route of all links of the fabric but the devices' attachments.
inline std::map<std::string, double> shares_by_name(const Fabric& fabric, const Route& route) {
  std::map<std::string, double> shares;
  for (const LinkUse& use : route.uses) {
    const std::string& name = fabric.links[use.link].name;
    if (!name.starts_with("attachment")) shares[name] = use.share;
  }
  return shares;
}

}  // namespace plumb::test
