#include "simulator/network/engine/event_path.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "simulator/network/engine/collective_meetings.h"

namespace plumb { inline namespace simulator {
namespace {

class PathFinder {
 public:
  PathFinder(const Schedule& lowered, const EventProgram& program, const NetworkSpec& network, const EventTimes& times)
      : lowered_(lowered),
        program_(program),
        network_(network),
        times_(times),
        ids_(action_ids(lowered)),
        groups_(lowered, program, network),
        first_dependency_(static_cast<std::size_t>(program.actions) + 1, 0) {
    for (std::size_t m = 0; m < times.meetings.size(); ++m) meetings_.push_back({times.meetings[m], m});
    std::ranges::stable_sort(meetings_, {}, key_of);
    by_action_ = program.dependencies;
    std::ranges::stable_sort(by_action_, {}, &Dependency::to);
    for (const Dependency& dependency : by_action_) ++first_dependency_[static_cast<std::size_t>(dependency.to) + 1];
    for (std::size_t a = 1; a < first_dependency_.size(); ++a) first_dependency_[a] += first_dependency_[a - 1];
  }

  std::vector<CriticalStep> find() {
    std::vector<CriticalStep> path;
    std::size_t before = meetings_.size();  // causes of a meeting happened before it, be it at the same moment
    const std::int32_t last = last_to_end(lowered_, times_.end);
    std::optional<Way> way = Way{.from = last, .until = times_.end[static_cast<std::size_t>(last)]};
    while (way) {
      path.push_back(step_of(way->from));
      if (const NumberedMeeting* met = last_meeting(*way, before)) {
        before = met->number;
        path.back().start = met->meeting.moment;
        way = Way{met->meeting.last, met->meeting.moment, Reason::kReduction};
      } else {
        way = way_to(way->from);
      }
      if (way) path.back().reason = way->reason;
    }
    std::ranges::reverse(path);
    return path;
  }

 private:
  /// The last of the actions that another waited for, the moment of it that was waited for, and the reason.
  struct Way {
    std::int32_t from = 0;
    SimTime until{0};
    Reason reason = Reason::kIssue;
  };

  CriticalStep step_of(std::int32_t instance) const {
    const ActionPlace place = place_of(ids_, action_of(program_, instance));
    return {.replica = replica_of(program_, instance),
            .rank = place.rank,
            .position = place.position,
            .action = lowered_.ranks[place.rank][place.position],
            .start = times_.start[instance],
            .end = times_.end[instance]};
  }

  /// Meetings are numbered in the order in which they happened.
  struct NumberedMeeting {
    Meeting meeting;
    std::size_t number = 0;
  };
  static std::pair<std::int32_t, SimTime> key_of(const NumberedMeeting& met) {
    return {met.meeting.waiting, met.meeting.moment};
  }

  /// Returns the last meeting on the way at which a collective inside the action waited for another replica, or null.
  const NumberedMeeting* last_meeting(const Way& way, std::size_t before) const {
    auto behind = std::ranges::upper_bound(meetings_, std::pair(way.from, way.until), {}, key_of);
    while (behind != meetings_.begin() && std::prev(behind)->meeting.waiting == way.from) {
      --behind;
      if (behind->number < before) return &*behind;
    }
    return nullptr;
  }

  /// Returns when the awaited event had happened, as far as the times of actions tell. Inside a host, that is the
  /// moment to which its speed had brought it.
  SimTime bound_of(const Dependency& dependency, std::int32_t base) const {
    const std::int32_t from = base + dependency.from;
    switch (dependency.wait) {
      case Wait::kStart:
        return times_.start[from];
      case Wait::kOccupied:
        return times_.end[from] - program_.latency[dependency.from];
      case Wait::kDelivered:
        return times_.end[from];
      case Wait::kInside:
        break;
    }
    const SimTime alone = program_.alone[dependency.from];
    if (alone == SimTime{0}) return times_.start[from];
    const double share = to_seconds(program_.inside[dependency.to]) / to_seconds(alone);
    const auto lasted = static_cast<double>((times_.end[from] - times_.start[from]).count());
    return times_.start[from] + at_most_latest(std::floor(share * lasted));
  }

  template <typename Visit>
  void for_each_dependency(std::int32_t action, Visit visit) const {
    for (std::int32_t d = first_dependency_[action]; d < first_dependency_[action + 1]; ++d) visit(by_action_[d]);
  }

  SimTime arrival(std::int32_t instance) const {
    SimTime latest{-1};
    for_each_dependency(action_of(program_, instance), [&](const Dependency& dependency) {
      latest = std::max(latest, bound_of(dependency, instance - action_of(program_, instance)));
    });
    return latest;
  }

  /// Returns the replica's instance that came last to a collective.
  std::int32_t last_of_group(std::int32_t instance) const {
    const std::int32_t action = action_of(program_, instance);
    if (program_.kind[action] != EventKind::kCollective) return instance;
    const int group = groups_.group_of(instance);
    if (group < 0) return instance;
    std::int32_t last = instance;
    SimTime latest = arrival(instance);
    for (const int replica : network_.collectives[static_cast<std::size_t>(group)].replicas) {
      const std::int32_t member = replica * program_.actions + action;
      const SimTime came = arrival(member);
      if (came <= latest) continue;
      latest = came;
      last = member;
    }
    return last;
  }

  /// Returns nothing if the action started at 0 by itself.
  std::optional<Way> way_to(std::int32_t instance) const {
    const std::int32_t own = action_of(program_, instance);
    const std::int32_t waited = last_of_group(instance - own + program_.lead[own]);
    const std::int32_t action = action_of(program_, waited);
    const std::int32_t base = waited - action;
    std::optional<Way> way;
    SimTime latest{-1};
    for_each_dependency(action, [&](const Dependency& dependency) {
      const SimTime bound = dependency.wait == Wait::kInside
                                ? std::min(times_.start[waited], times_.end[base + dependency.from])
                                : bound_of(dependency, base);
      if (bound <= latest) return;
      latest = bound;
      way = Way{.from = base + dependency.from, .until = bound, .reason = dependency.reason};
    });
    return way;
  }

  const Schedule& lowered_;
  const EventProgram& program_;
  const NetworkSpec& network_;
  const EventTimes& times_;
  ActionIds ids_;
  CollectiveMeetings groups_;
  std::vector<NumberedMeeting> meetings_;       ///< by the instance that waited, then moment
  std::vector<Dependency> by_action_;           ///< by the action that waits
  std::vector<std::int32_t> first_dependency_;  ///< [action] index in by_action_
};

}  // namespace

std::vector<CriticalStep> critical_path(const Schedule& lowered, const EventProgram& program,
                                        const NetworkSpec& network, const EventTimes& times) {
  if (times.end.empty()) return {};
  return PathFinder(lowered, program, network, times).find();
}

}}  // namespace plumb::simulator
