#include "simulator/network/event_engine.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "simulator/deadlock.h"
#include "simulator/network/event_queue.h"

namespace plumb {
namespace {

constexpr SimTime kUnknown{-1};

/// Compute of one rank of one replica while collectives may slow it down.
struct RankState {
  std::int32_t running = -1;  ///< instance
  std::uint32_t version = 0;
  std::int32_t collectives = 0;       ///< under way
  double work_ps = 0;                 ///< of `running`
  double work_left_ps = 0;            ///< at `since`
  std::vector<std::int32_t> buckets;  ///< REDUCE_GRADs inside `running` whose bucket is not complete
  SimTime since{0};
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
        ranks_(schedule.ranks.size() * network.replicas) {
    const std::size_t instances = static_cast<std::size_t>(program.actions) * network.replicas;
    times_.start.assign(instances, kUnknown);
    times_.end.assign(instances, kUnknown);
    waits_.reserve(instances);
    for (int k = 0; k < network.replicas; ++k) waits_.insert(waits_.end(), program.waits.begin(), program.waits.end());
    for (const auto& actions : schedule.ranks) {
      for (const Action& action : actions) actions_.push_back(&action);
    }
    index_collectives();
  }

  EventTimes run(Sends sends) {
    for (std::int32_t instance = 0; instance < static_cast<std::int32_t>(waits_.size()); ++instance) {
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
        for (const std::int32_t instance : flows_.take_ended()) end_transfer(instance);
      }
      while (!events_.empty() && events_.front().time == now_) {
        happen(events_.take());
      }
      begin_ready();
    }
    copy_to_followers();
    if (std::ranges::find(times_.end, kUnknown) != times_.end.end()) throw deadlock_error(schedule_, sends);
    end_receives();
    return std::move(times_);
  }

 private:
  std::int32_t action_of(std::int32_t instance) const {
    return instance < program_.actions ? instance : instance % program_.actions;
  }
  std::int32_t replica_of(std::int32_t instance) const { return instance / program_.actions; }
  EventKind kind(std::int32_t instance) const { return program_.kind[action_of(instance)]; }
  RankState& rank_of(std::int32_t instance) {
    return ranks_[static_cast<std::size_t>(replica_of(instance)) * schedule_.ranks.size() +
                  program_.rank[action_of(instance)]];
  }

  /// [op and stage] the group of each replica, and for each occurrence how many of the group have not issued it.
  void index_collectives() {
    group_of_.assign(2 * stages_ * network_.replicas, -1);
    for (std::size_t g = 0; g < network_.collectives.size(); ++g) {
      const CollectiveFlow& flow = network_.collectives[g];
      for (const int replica : flow.replicas) group_of_[slot(flow.op, flow.stage, replica)] = static_cast<int>(g);
    }
    missing_.assign(static_cast<std::size_t>(program_.actions) * network_.replicas, 0);
    for (std::int32_t a = 0; a < program_.actions; ++a) {
      if (program_.kind[a] != EventKind::kCollective) continue;
      for (int k = 0; k < network_.replicas; ++k) {
        const int g = group_of_[slot(actions_[a]->op, actions_[a]->stage, k)];
        if (g >= 0 && network_.collectives[g].replicas.front() == k)
          missing_[first_instance(g, a)] = static_cast<std::int32_t>(network_.collectives[g].replicas.size());
      }
    }
  }
  std::size_t slot(Op op, int stage, int replica) const {
    return (static_cast<std::size_t>(replica) * 2 + (op == Op::kReduceGrad ? 1 : 0)) * stages_ + stage;
  }
  std::int32_t first_instance(int group, std::int32_t action) const {
    return network_.collectives[group].replicas.front() * program_.actions + action;
  }

  void begin_ready() {
    for (std::size_t i = 0; i < ready_.size(); ++i) begin(ready_[i]);
    ready_.clear();
  }

  void begin(std::int32_t instance) {
    const std::int32_t action = action_of(instance);
    switch (program_.kind[action]) {
      case EventKind::kCompute:
        started(instance);
        begin_compute(instance);
        break;
      case EventKind::kMessage: {
        started(instance);
        const auto& routes =
            actions_[action]->op == Op::kSendActivation ? network_.activation_route : network_.gradient_route;
        const std::size_t at = static_cast<std::size_t>(replica_of(instance)) * stages_ + actions_[action]->stage;
        begin_transfer(instance, routes.empty() ? kNoRoute : routes[at]);
        break;
      }
      case EventKind::kCollective:
        join_collective(instance);
        break;
      default:
        started(instance);
        begin_transfer(instance, kNoRoute);
        break;
    }
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
    const std::int32_t action = action_of(instance);
    const int group = group_of_[slot(actions_[action]->op, actions_[action]->stage, replica_of(instance))];
    if (group < 0) {
      started(instance);
      count_collective(instance, 1);
      begin_transfer(instance, kNoRoute);
      return;
    }
    const std::int32_t first = first_instance(group, action);
    if (--missing_[first] > 0) return;
    for (const int replica : network_.collectives[group].replicas) {
      const std::int32_t member = replica * program_.actions + action;
      started(member);
      count_collective(member, 1);
    }
    begin_transfer(first, network_.collectives[group].route);
  }

  void end_transfer(std::int32_t instance) {
    const std::int32_t action = action_of(instance);
    if (program_.kind[action] != EventKind::kCollective) {
      ended(instance);
      return;
    }
    const int group = group_of_[slot(actions_[action]->op, actions_[action]->stage, replica_of(instance))];
    if (group < 0) {
      count_collective(instance, -1);
      ended(instance);
      return;
    }
    for (const int replica : network_.collectives[group].replicas) {
      const std::int32_t member = replica * program_.actions + action;
      count_collective(member, -1);
      ended(member);
    }
  }

  void begin_compute(std::int32_t instance) {
    const SimTime work = at_speed(instance, program_.alone[action_of(instance)]);
    if (network_.collective_slowdown == 0) {
      for_each_inside(instance, [&](std::int32_t reduction) {
        events_.put(now_ + at_speed(instance, program_.inside[action_of(reduction)]), reduction, Happening::kBucket);
      });
      if (work == SimTime{0}) {
        ended(instance);
      } else {
        events_.put(now_ + work, instance, Happening::kEnd);
      }
      return;
    }
    RankState& rank = rank_of(instance);
    rank.running = instance;
    rank.work_ps = rank.work_left_ps = static_cast<double>(work.count());
    rank.since = now_;
    for_each_inside(instance, [&](std::int32_t reduction) { rank.buckets.push_back(reduction); });
    schedule_compute(rank);
  }

  /// How long work takes on the rank of `instance`.
  SimTime at_speed(std::int32_t instance, SimTime work) const {
    if (network_.speeds.empty()) return work;
    const double speed = network_.speeds[static_cast<std::size_t>(replica_of(instance)) * schedule_.ranks.size() +
                                         program_.rank[action_of(instance)]];
    return speed == 1.0 ? work : SimTime{std::llround(static_cast<double>(work.count()) / speed)};
  }

  /// The REDUCE_GRADs that start inside a compute action.
  template <typename Visit>
  void for_each_inside(std::int32_t host, Visit visit) const {
    const std::int32_t action = action_of(host);
    const std::size_t at = kWaits * static_cast<std::size_t>(action) + static_cast<std::size_t>(Wait::kInside);
    for (std::int32_t i = program_.first_successor[at]; i < program_.first_successor[at + 1]; ++i)
      visit(host - action + program_.successors[i]);
  }

  double compute_speed(const RankState& rank) const {
    return rank.collectives > 0 ? 1 / (1 + network_.collective_slowdown) : 1.0;
  }

  void schedule_compute(RankState& rank) {
    ++rank.version;
    const auto time_for = [&](double work_ps) {
      return SimTime{std::max<std::int64_t>(0, std::llround(work_ps / compute_speed(rank)))};
    };
    for (const std::int32_t reduction : rank.buckets) {
      const double behind_ps =
          rank.work_ps - static_cast<double>(at_speed(reduction, program_.inside[action_of(reduction)]).count());
      events_.put(now_ + time_for(rank.work_left_ps - behind_ps), reduction, Happening::kBucket, rank.version);
    }
    events_.put(now_ + time_for(rank.work_left_ps), rank.running, Happening::kEnd, rank.version);
  }

  /// A collective begins (1) or ends (-1) on the ranks of its copies: what they compute goes on at another speed.
  void count_collective(std::int32_t instance, int change) {
    if (network_.collective_slowdown == 0) return;
    const std::int32_t action = action_of(instance);
    const std::int32_t joint = program_.joint.collective_of.empty() ? -1 : program_.joint.collective_of[action];
    if (joint < 0) {
      change_collectives(rank_of(instance), change);
      return;
    }
    for (const std::int32_t member : program_.joint.members[joint])
      change_collectives(rank_of(instance - action + member), change);
  }

  void change_collectives(RankState& rank, int change) {
    const double before = compute_speed(rank);
    rank.collectives += change;
    if (rank.running < 0 || compute_speed(rank) == before) return;
    rank.work_left_ps -= before * static_cast<double>((now_ - rank.since).count());
    rank.since = now_;
    schedule_compute(rank);
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
    if (event.happening == Happening::kDelivery) {
      ++times_.events;
      delivered(event.instance);
    } else if (is_outdated(event)) {
      return;
    } else if (event.happening == Happening::kBucket) {
      ++times_.events;
      std::erase(rank_of(event.instance).buckets, event.instance);
      if (--waits_[event.instance] == 0) ready_.push_back(event.instance);
    } else if (kind(event.instance) == EventKind::kCompute) {
      if (network_.collective_slowdown > 0) rank_of(event.instance).running = -1;
      ended(event.instance);
    } else {
      end_transfer(event.instance);
    }
  }

  bool is_outdated(const Event& event) {
    if (network_.collective_slowdown == 0 || event.happening == Happening::kDelivery) return false;
    const RankState& rank = rank_of(event.instance);
    if (event.happening == Happening::kBucket) return rank.version != event.version;
    if (kind(event.instance) != EventKind::kCompute) return false;
    return rank.running != event.instance || rank.version != event.version;
  }

  void drop_outdated() {
    while (!events_.empty() && is_outdated(events_.front())) events_.take();
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

  void copy_to_followers() {
    for (std::int32_t a = 0; a < program_.actions; ++a) {
      if (program_.kind[a] != EventKind::kFollower) continue;
      for (int k = 0; k < network_.replicas; ++k) {
        const std::size_t base = static_cast<std::size_t>(k) * program_.actions;
        times_.start[base + a] = times_.start[base + program_.lead[a]];
        times_.end[base + a] = times_.end[base + program_.lead[a]];
      }
    }
  }

  void end_receives() {
    for (std::int32_t a = 0; a < program_.actions; ++a) {
      if (program_.arrival[a] < 0) continue;
      for (int k = 0; k < network_.replicas; ++k) {
        const std::size_t base = static_cast<std::size_t>(k) * program_.actions;
        const std::size_t receive = base + program_.arrival[a];
        times_.end[receive] = std::max(times_.start[receive], times_.end[base + a]);
      }
    }
  }

  const Schedule& schedule_;
  const EventProgram& program_;
  const NetworkSpec& network_;
  std::size_t stages_;
  Flows flows_;
  std::vector<RankState> ranks_;        ///< [replica * ranks + rank]
  std::vector<const Action*> actions_;  ///< [action]
  std::vector<std::int32_t> waits_;     ///< [instance]
  std::vector<int> group_of_;           ///< [slot] number of the collective; -1
  std::vector<std::int32_t> missing_;   ///< [first instance of a group]
  std::vector<std::int32_t> ready_;     ///< first in, first out
  EventQueue events_;
  SimTime now_{0};
  EventTimes times_;
};

}  // namespace

EventTimes event_times(const Schedule& lowered, const EventProgram& program, const NetworkSpec& network, Sends sends) {
  return EventEngine(lowered, program, network).run(sends);
}

}  // namespace plumb
