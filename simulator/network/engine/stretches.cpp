#include "simulator/network/engine/stretches.h"

#include <algorithm>
#include <span>
#include <utility>

#include "schedules/phases.h"

namespace plumb { inline namespace simulator {
namespace {

using Lane = std::vector<Stretch>;
using Lanes = std::array<Lane, kLanes>;

/// Makes the plans of actions: one plan serves all actions that are alike.
class Planner {
 public:
  Planner(const CostTable& costs, const NetworkSpec& network, const InnerClasses& classes)
      : costs_(costs), classes_(classes) {
    for (const auto& groups : classes.group_of) {
      shares_.push_back(
          std::ranges::any_of(groups, [&](std::int32_t g) { return g >= 0 && network.inner[g].route != kNoRoute; }));
    }
    const auto is_normal = [](double speed) { return speed == 1.0; };
    uneven_ = network.collective_slowdown > 0 || !std::ranges::all_of(network.speeds, is_normal);
  }

  /// False if no action of any kind needs a plan.
  bool any_may_need_plan() const { return uneven_ || std::ranges::find(shares_, true) != shares_.end(); }

  bool needs_plan(const Action& action) const {
    return std::ranges::any_of(segments_of(costs_, action), [&](const Segment& segment) {
      if (segment.kind != Segment::Kind::kCollective) return false;
      const std::int32_t number = class_of(action, segment);
      return uneven_ || (number != kNoClass && shares_[number]);
    });
  }

  /// Makes the plan of an action, or of an overlapped pair, and returns its number.
  std::int32_t plan(std::span<const Action> actions, const std::vector<SimTime>& inside) {
    const auto number = static_cast<std::int32_t>(plans_.first_phase.size());
    plans_.first_phase.push_back(static_cast<std::int32_t>(plans_.phases.size()));
    SimTime base{0};
    for (const CostPhase& parts : phases_of(costs_, actions)) {
      Lanes lanes = {lane_of(parts.blocking, actions, base), lane_of(parts.beside, actions, base)};
      const SimTime end = std::max(end_of(lanes[0], base), end_of(lanes[1], base));
      for (const SimTime moment : inside) {
        if (moment > base && moment <= end) cut(lanes[moment <= end_of(lanes[0], base) ? 0 : 1], moment);
      }
      base = end;
      Phase& phase = plans_.phases.emplace_back();
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        phase.first[lane] = static_cast<std::int32_t>(plans_.stretches.size());
        plans_.stretches.insert(plans_.stretches.end(), lanes[lane].begin(), lanes[lane].end());
      }
      phase.first[kLanes] = static_cast<std::int32_t>(plans_.stretches.size());
    }
    return number;
  }

  Stretches finish(std::vector<std::int32_t> plan_of) {
    plans_.first_phase.push_back(static_cast<std::int32_t>(plans_.phases.size()));
    plans_.plan_of = std::move(plan_of);
    return std::move(plans_);
  }

 private:
  std::int32_t class_of(const Action& action, const Segment& segment) const {
    const auto found = classes_.number.find({action.stage, segment.group, segment.collective});
    return found == classes_.number.end() ? kNoClass : found->second;
  }

  static SimTime end_of(const Lane& lane, SimTime base) { return lane.empty() ? base : lane.back().until; }

  Lane lane_of(const std::vector<LaneSegment>& segments, std::span<const Action> actions, SimTime base) const {
    Lane lane;
    for (const LaneSegment& of : segments) {
      const Segment& segment = *of.segment;
      Stretch stretch{.lasts = to_sim_time(segment.seconds),
                      .action = of.action,
                      .computes = segment.kind == Segment::Kind::kCompute && !segment.beside};
      if (stretch.lasts == SimTime{0}) continue;
      stretch.until = end_of(lane, base) + stretch.lasts;
      if (segment.kind == Segment::Kind::kCollective) {
        stretch.inner_class = class_of(actions[of.action], segment);
        stretch.group = segment.group;
        stretch.kind = segment.collective;
        stretch.bytes_per_second = static_cast<double>(segment.bytes) / segment.seconds.count();
      }
      const bool joins = !lane.empty() && lane.back().inner_class == kNoClass && stretch.inner_class == kNoClass &&
                         lane.back().computes == stretch.computes && lane.back().group == stretch.group &&
                         lane.back().kind == stretch.kind;
      if (!joins) {
        lane.push_back(stretch);
        continue;
      }
      lane.back().lasts += stretch.lasts;
      lane.back().until = stretch.until;
    }
    return lane;
  }

  /// Ends a stretch of the lane at that moment.
  static void cut(Lane& lane, SimTime moment) {
    const auto stretch = std::ranges::find_if(lane, [&](const Stretch& s) { return s.until >= moment; });
    if (stretch->until == moment) {
      stretch->completes_bucket = true;
      return;
    }
    Stretch rest = *stretch;
    rest.lasts = stretch->until - moment;
    stretch->lasts -= rest.lasts;
    stretch->until = moment;
    stretch->completes_bucket = true;
    lane.insert(stretch + 1, rest);
  }

  const CostTable& costs_;
  const InnerClasses& classes_;
  std::vector<bool> shares_;  ///< [class] true if one of its groups crosses links
  bool uneven_ = false;       ///< true if some rank computes at another speed than normal, at some time
  Stretches plans_;
};

}  // namespace

InnerClasses inner_classes(const NetworkSpec& network) {
  InnerClasses classes;
  for (std::size_t g = 0; g < network.inner.size(); ++g) {
    const InnerCollective& flow = network.inner[g];
    const auto [it, added] = classes.number.try_emplace({flow.stage, flow.group, flow.kind},
                                                        static_cast<std::int32_t>(classes.group_of.size()));
    if (added) classes.group_of.emplace_back(network.replicas, -1);
    for (const int replica : flow.replicas) classes.group_of[it->second][replica] = static_cast<std::int32_t>(g);
  }
  return classes;
}

Stretches stretches_of(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                       const InnerClasses& classes, const std::map<std::int32_t, std::vector<SimTime>>& inside) {
  using Kind = std::tuple<Op, std::int32_t, std::int16_t>;
  Planner planner(costs, network, classes);
  if (!planner.any_may_need_plan()) return {};
  std::vector<std::int32_t> plan_of;
  std::map<std::vector<Kind>, std::int32_t> known;
  bool any = false;
  for (const auto& actions : lowered.ranks) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto id = static_cast<std::int32_t>(plan_of.size());
      plan_of.push_back(-1);
      if (!is_compute(actions[i].op) || (i > 0 && actions[i - 1].overlaps_next)) continue;
      const std::span<const Action> together(&actions[i], actions[i].overlaps_next ? 2 : 1);
      if (std::ranges::none_of(together, [&](const Action& action) { return planner.needs_plan(action); })) continue;
      any = true;
      if (const auto buckets = inside.find(id); buckets != inside.end()) {
        plan_of.back() = planner.plan(together, buckets->second);
        continue;
      }
      std::vector<Kind> kind;
      for (const Action& action : together) kind.emplace_back(action.op, action.stage, action.part);
      const auto [it, added] = known.try_emplace(std::move(kind), -1);
      if (added) it->second = planner.plan(together, {});
      plan_of.back() = it->second;
    }
  }
  if (!any) return {};
  return planner.finish(std::move(plan_of));
}

}}  // namespace plumb::simulator
