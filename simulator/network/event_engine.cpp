#include "simulator/network/event_engine.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "simulator/deadlock.h"
#include "simulator/network/collective_meetings.h"
#include "simulator/network/event_queue.h"
#include "simulator/network/rank_compute.h"

namespace plumb {
namespace {

constexpr SimTime kUnknown{-1};

/// How far an action with collectives inside it is.
struct Progress {
  std::int32_t phase = 0;
  std::int32_t last_phase = 0;  ///< one behind
  int open_lanes = 0;
  std::array<std::int32_t, kLanes> at{};  ///< [lane] stretch under way
};

std::vector<double> capacities_of(const NetworkSpec& network) {
  std::vector<double> capacities;
  for (const NetworkLink& link : network.links) capacities.push_back(link.bytes_per_second);
  return capacities;
}

class EventEngine {
 public:
  EventEngine(const Schedule& schedule, const EventProgram& program, const NetworkSpec& network)
      : schedule_(schedule),
        program_(program),
        network_(network),
        stages_(schedule.stages.size()),
        flows_(capacities_of(network), network.routes),
        compute_(program, network, static_cast<int>(schedule.ranks.size()), events_),
        meetings_(schedule, program, network),
        instances_(program.actions * network.replicas) {
    times_.start.assign(static_cast<std::size_t>(instances_), kUnknown);
    times_.end = times_.start;
    waits_.reserve(times_.start.size());
    for (int k = 0; k < network.replicas; ++k) waits_.insert(waits_.end(), program.waits.begin(), program.waits.end());
    for (const auto& actions : schedule.ranks) {
      for (const Action& action : actions) actions_.push_back(&action);
    }
  }

  EventTimes run(Sends sends) {
    for (std::int32_t instance = 0; instance < instances_; ++instance) {
      if (waits_[instance] == 0 && kind(instance) != EventKind::kFollower) ready_.push_back(instance);
    }
    begin_ready();
    for (;;) {
      drop_outdated();
      const std::optional<SimTime> flow_end = flows_.next_end();
      if (events_.empty() && !flow_end) break;
      now_ = events_.empty() ? *flow_end : events_.front().time;
      if (flow_end) now_ = std::min(now_, *flow_end);
      if (flow_end == now_) {
        for (const std::int32_t flow : flows_.take_ended()) end_flow(flow);
      }
      while (!events_.empty() && events_.front().time == now_) happen(events_.take());
      begin_ready();
    }
    if (is_stuck()) throw deadlock_error(schedule_, sends);
    return with_followers(std::move(times_), program_, network_.replicas);
  }

 private:
  std::int32_t action_of(std::int32_t instance) const { return plumb::action_of(program_, instance); }
  std::int32_t replica_of(std::int32_t instance) const { return plumb::replica_of(program_, instance); }
  std::int32_t instance_of(int replica, std::int32_t instance) const {
    return replica * program_.actions + action_of(instance);
  }
  EventKind kind(std::int32_t instance) const { return program_.kind[action_of(instance)]; }

  bool is_stuck() const {
    for (std::int32_t instance = 0; instance < instances_; ++instance) {
      if (times_.end[instance] == kUnknown && kind(instance) != EventKind::kFollower) return true;
    }
    return false;
  }

  void begin_ready() {
    for (std::size_t i = 0; i < ready_.size(); ++i) begin(ready_[i]);
    ready_.clear();
  }

  void begin(std::int32_t instance) {
    switch (kind(instance)) {
      case EventKind::kCompute:
        started(instance);
        begin_compute(instance);
        break;
      case EventKind::kCollective:
        join_collective(instance);
        break;
      default:
        started(instance);
        begin_transfer(instance, route_of(instance));
        break;
    }
  }

  /// Of a message or a move.
  std::int32_t route_of(std::int32_t instance) const {
    const Action& action = *actions_[action_of(instance)];
    if (!is_send(action.op) && !is_move(action.op)) return kNoRoute;
    const std::vector<std::int32_t>& routes = is_move(action.op) ? network_.move_routes[move_number(action.op)]
                                              : action.op == Op::kSendActivation ? network_.activation_route
                                                                                 : network_.gradient_route;
    return routes.empty() ? kNoRoute : routes[static_cast<std::size_t>(replica_of(instance)) * stages_ + action.stage];
  }

  void started(std::int32_t instance) {
    times_.start[instance] = now_;
    release(instance, Wait::kStart);
  }

  void begin_transfer(std::int32_t instance, std::int32_t route) {
    const std::int32_t action = action_of(instance);
    const SimTime alone = program_.alone[action];
    if (alone == SimTime{0}) {
      end_transfer(instance);
    } else if (route == kNoRoute || !(program_.rate[action] > 0)) {
      events_.put(now_ + alone, instance, Happening::kEnd);
    } else {
      flows_.start({.id = instance, .route = route, .cap_bytes_per_second = program_.rate[action], .alone = alone},
                   now_);
    }
  }

  void join_collective(std::int32_t instance) {
    const int group = meetings_.group_of(instance);
    if (group < 0) {
      started(instance);
      count_collective(instance, 1);
      begin_transfer(instance, kNoRoute);
      return;
    }
    if (!meetings_.come(group, instance)) return;
    const std::vector<int>& replicas = network_.collectives[group].replicas;
    for (const int replica : replicas) {
      const std::int32_t member = instance_of(replica, instance);
      started(member);
      count_collective(member, 1);
    }
    begin_transfer(instance_of(replicas.front(), instance), network_.collectives[group].route);
  }

  void end_transfer(std::int32_t instance) {
    if (kind(instance) != EventKind::kCollective) {
      ended(instance);
      return;
    }
    const int group = meetings_.group_of(instance);
    if (group < 0) {
      count_collective(instance, -1);
      ended(instance);
      return;
    }
    for (const int replica : network_.collectives[group].replicas) {
      const std::int32_t member = instance_of(replica, instance);
      count_collective(member, -1);
      ended(member);
    }
  }

  void begin_compute(std::int32_t instance) {
    const std::int32_t action = action_of(instance);
    if (!program_.stretches.plan_of.empty() && program_.stretches.plan_of[action] >= 0) {
      begin_stretches(instance, program_.stretches.plan_of[action]);
      return;
    }
    buckets_.clear();
    if (!program_.inside.empty())
      for_each_inside(instance, [&](std::int32_t reduction) { buckets_.push_back(reduction); });
    if (!compute_.begin(instance, program_.alone[action], buckets_, now_)) ended(instance);
  }

  /// The REDUCE_GRADs that start inside a compute action.
  template <typename Visit>
  void for_each_inside(std::int32_t host, Visit visit) const {
    const std::int32_t action = action_of(host);
    const std::size_t at = kWaits * static_cast<std::size_t>(action) + static_cast<std::size_t>(Wait::kInside);
    for (std::int32_t i = program_.first_successor[at]; i < program_.first_successor[at + 1]; ++i)
      visit(host - action + program_.successors[i]);
  }

  Progress& progress_of(std::int32_t instance) {
    const std::size_t rank =
        static_cast<std::size_t>(replica_of(instance)) * schedule_.ranks.size() + program_.rank[action_of(instance)];
    return progress_[rank];
  }

  void begin_stretches(std::int32_t instance, std::int32_t plan) {
    if (progress_.empty()) progress_.resize(schedule_.ranks.size() * network_.replicas);
    Progress& progress = progress_of(instance);
    progress.phase = program_.stretches.first_phase[plan];
    progress.last_phase = program_.stretches.first_phase[plan + 1];
    complete_buckets(instance, SimTime{0});
    begin_phase(instance, progress);
  }

  void begin_phase(std::int32_t instance, Progress& progress) {
    const Phase& phase = program_.stretches.phases[progress.phase];
    progress.open_lanes = static_cast<int>(kLanes);
    std::copy_n(phase.first.begin(), kLanes, progress.at.begin());
    go_on(instance, progress, LaneKind::kBlocking);
    go_on(instance, progress, LaneKind::kBeside);
  }

  void go_on(std::int32_t instance, Progress& progress, LaneKind lane) {
    const auto l = static_cast<std::size_t>(lane);
    if (progress.at[l] < program_.stretches.phases[progress.phase].first[l + 1]) {
      begin_stretch(instance, lane, program_.stretches.stretches[progress.at[l]]);
    } else if (--progress.open_lanes == 0) {
      ++progress.phase == progress.last_phase ? ended(instance) : begin_phase(instance, progress);
    }
  }

  void begin_stretch(std::int32_t instance, LaneKind lane, const Stretch& stretch) {
    const Happening end = lane == LaneKind::kBlocking ? Happening::kStretch : Happening::kBeside;
    if (stretch.computes) {
      if (!compute_.begin(instance, stretch.lasts, {}, now_)) finish_stretch(instance, lane);
      return;
    }
    const std::int32_t number = inner_group(instance, stretch);
    if (number < 0) {
      events_.put(now_ + stretch.lasts, instance, end);
      return;
    }
    if (!meetings_.come_inside(number, lane)) return;
    const InnerCollective& group = network_.inner[number];
    const std::int32_t first = instance_of(group.replicas.front(), instance);
    const double rate = inner_rate(group, stretch.bytes_per_second);
    if (group.route == kNoRoute || !(rate > 0)) {
      events_.put(now_ + stretch.lasts, first, end);
      return;
    }
    flows_.start({.id = lane == LaneKind::kBlocking ? first : instances_ + first,
                  .route = group.route,
                  .cap_bytes_per_second = rate,
                  .alone = stretch.lasts},
                 now_);
  }

  std::int32_t inner_group(std::int32_t instance, const Stretch& stretch) const {
    return stretch.inner_class == kNoClass ? -1 : program_.inner.group_of[stretch.inner_class][replica_of(instance)];
  }

  /// A collective inside an action is over, for all of its group.
  void end_collective_stretch(std::int32_t instance, LaneKind lane) {
    const Stretch& stretch = program_.stretches.stretches[progress_of(instance).at[static_cast<std::size_t>(lane)]];
    const std::int32_t number = inner_group(instance, stretch);
    if (number < 0) {
      finish_stretch(instance, lane);
      return;
    }
    for (const int replica : network_.inner[number].replicas) finish_stretch(instance_of(replica, instance), lane);
  }

  void finish_stretch(std::int32_t instance, LaneKind lane) {
    Progress& progress = progress_of(instance);
    std::int32_t& at = progress.at[static_cast<std::size_t>(lane)];
    const Stretch& stretch = program_.stretches.stretches[at];
    if (stretch.completes_bucket) complete_buckets(instance, stretch.until);
    ++at;
    go_on(instance, progress, lane);
  }

  void complete_buckets(std::int32_t host, SimTime offset) {
    for_each_inside(host, [&](std::int32_t reduction) {
      if (program_.inside[action_of(reduction)] == offset) complete_bucket(reduction);
    });
  }

  void complete_bucket(std::int32_t reduction) {
    ++times_.events;
    if (--waits_[reduction] == 0) ready_.push_back(reduction);
  }

  void end_flow(std::int32_t flow) {
    if (flow >= instances_) {
      end_collective_stretch(flow - instances_, LaneKind::kBeside);
    } else if (kind(flow) == EventKind::kCompute) {
      end_collective_stretch(flow, LaneKind::kBlocking);
    } else {
      end_transfer(flow);
    }
  }

  /// A collective begins (1) or ends (-1) on the ranks of its copies.
  void count_collective(std::int32_t instance, int change) {
    if (network_.collective_slowdown == 0) return;
    const std::int32_t action = action_of(instance);
    const std::int32_t joint = program_.joint.collective_of.empty() ? -1 : program_.joint.collective_of[action];
    if (joint < 0) {
      compute_.change_collectives(instance, change, now_);
      return;
    }
    for (const std::int32_t member : program_.joint.members[joint])
      compute_.change_collectives(instance - action + member, change, now_);
  }

  void ended(std::int32_t instance) {
    ++times_.events;
    const SimTime latency = program_.latency[action_of(instance)];
    release(instance, Wait::kOccupied);
    if (latency > SimTime{0}) {
      events_.put(now_ + latency, instance, Happening::kDelivery);
    } else {
      delivered(instance);
    }
  }

  void delivered(std::int32_t instance) {
    times_.end[instance] = now_;
    release(instance, Wait::kDelivered);
  }

  void happen(const Event& event) {
    if (compute_.is_outdated(event)) return;
    const std::int32_t instance = event.instance;
    switch (event.happening) {
      case Happening::kDelivery:
        ++times_.events;
        delivered(instance);
        break;
      case Happening::kBucket:
        compute_.complete(instance);
        complete_bucket(instance);
        break;
      case Happening::kStretch:
        end_collective_stretch(instance, LaneKind::kBlocking);
        break;
      case Happening::kBeside:
        end_collective_stretch(instance, LaneKind::kBeside);
        break;
      case Happening::kEnd:
        if (kind(instance) == EventKind::kCompute) {
          end_compute(instance);
        } else {
          end_transfer(instance);
        }
    }
  }

  void end_compute(std::int32_t instance) {
    compute_.end(instance);
    const std::vector<std::int32_t>& plans = program_.stretches.plan_of;
    if (!plans.empty() && plans[action_of(instance)] >= 0) {
      finish_stretch(instance, LaneKind::kBlocking);
    } else {
      ended(instance);
    }
  }

  void drop_outdated() {
    while (!events_.empty() && compute_.is_outdated(events_.front())) events_.take();
  }

  void release(std::int32_t instance, Wait wait) {
    const std::int32_t action = action_of(instance);
    const std::int32_t base = instance - action;
    const std::size_t at = kWaits * static_cast<std::size_t>(action) + static_cast<std::size_t>(wait);
    for (std::int32_t i = program_.first_successor[at]; i < program_.first_successor[at + 1]; ++i) {
      const std::int32_t next = base + program_.successors[i];
      if (--waits_[next] == 0) ready_.push_back(next);
    }
  }

  const Schedule& schedule_;
  const EventProgram& program_;
  const NetworkSpec& network_;
  std::size_t stages_;
  Flows flows_;
  EventQueue events_;
  RankCompute compute_;
  CollectiveMeetings meetings_;
  std::int32_t instances_;
  std::vector<const Action*> actions_;  ///< [action]
  std::vector<std::int32_t> waits_;     ///< [instance]
  std::vector<Progress> progress_;      ///< [replica * ranks + rank]
  std::vector<std::int32_t> buckets_;   ///< of the action that begins
  std::vector<std::int32_t> ready_;     ///< first in, first out
  SimTime now_{0};
  EventTimes times_;
};

}  // namespace

EventTimes event_times(const Schedule& lowered, const EventProgram& program, const NetworkSpec& network, Sends sends) {
  return EventEngine(lowered, program, network).run(sends);
}

}  // namespace plumb
