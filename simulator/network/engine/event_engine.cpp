#include "simulator/network/engine/event_engine.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "simulator/compile/deadlock.h"
#include "simulator/network/engine/collective_meetings.h"
#include "simulator/network/engine/event_queue.h"
#include "simulator/network/engine/rank_compute.h"
#include "simulator/network/engine/stretch_run.h"

namespace plumb { inline namespace simulator {
namespace {

constexpr SimTime kUnknown{-1};

std::vector<double> capacities_of(const NetworkSpec& network) {
  std::vector<double> capacities;
  for (const NetworkLink& link : network.links) capacities.push_back(link.bytes_per_second);
  return capacities;
}

class EventEngine {
 public:
  EventEngine(const Schedule& schedule, const EventProgram& program, const NetworkSpec& network,
              const EventOptions& options)
      : schedule_(schedule),
        program_(program),
        network_(network),
        stages_(schedule.stages.size()),
        flows_(capacities_of(network), network.routes),
        compute_(program, network, static_cast<int>(schedule.ranks.size()), events_, options.tape),
        meetings_(schedule, program, network),
        tape_(options.tape),
        draws_(options.draws),
        numbers_(numbering(program, network)),
        stretches_run_(
            {.program = program,
             .network = network,
             .events = events_,
             .flows = flows_,
             .compute = compute_,
             .meetings = meetings_,
             .numbers = numbers_,
             .tape = tape_,
             .draws = draws_,
             .meetings_inside = options.record_meetings ? &times_.meetings : nullptr},
            static_cast<int>(schedule.ranks.size()), [this](std::int32_t instance) { ended(instance); },
            [this](std::int32_t host, SimTime offset) { complete_buckets(host, offset); }),
        instances_(program.actions * network.replicas) {
    times_.start.assign(static_cast<std::size_t>(instances_), kUnknown);
    times_.end = times_.start;
    if (tape_ != nullptr) flows_.record(*tape_, numbers_.capacity);
    waits_.reserve(times_.start.size());
    for (int k = 0; k < network.replicas; ++k) waits_.insert(waits_.end(), program.waits.begin(), program.waits.end());
    for (const auto& actions : schedule.ranks) {
      for (const Action& action : actions) actions_.push_back(&action);
    }
  }

  EventTimes run(Sends sends) {
    for (std::int32_t instance = 0; instance < instances_; ++instance) {
      if (waits_[instance] == 0 && kind(instance) != EventKind::kFollower) make_ready(instance);
    }
    begin_ready();
    for (;;) {
      drop_outdated();
      const std::optional<SimTime> flow_end = flows_.next_end();
      if (events_.empty() && !flow_end) break;
      now_ = events_.empty() ? *flow_end : events_.front().time;
      if (flow_end) now_ = std::min(now_, *flow_end);
      if (now_ >= kLatestMoment) refuse();
      if (flow_end == now_) {
        const std::vector<std::int32_t>& ended_flows = flows_.take_ended();
        for (std::size_t i = 0; i < ended_flows.size(); ++i) {
          if (tape_ != nullptr) tape_->now = flows_.ended_nodes()[i];
          end_flow(ended_flows[i]);
        }
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

  /// Names the action or transfer that is on its way at the latest moment, and the likely cause.
  [[noreturn]] void refuse() {
    const bool computes = !events_.empty() && events_.front().time == now_;
    const std::int32_t instance = computes ? events_.front().instance : -1;
    const std::string what =
        computes ? fmt::format("{} of replica {}", to_text(*actions_[action_of(instance)]), replica_of(instance))
                 : "a transfer over shared links";
    std::string because;
    if (const auto slowest = std::ranges::min_element(network_.speeds);
        computes && slowest != network_.speeds.end() && *slowest < 1) {
      because = fmt::format("with a rank at {} of its speed", *slowest);
    } else if (const auto narrowest = std::ranges::min_element(network_.links, {}, &NetworkLink::bytes_per_second);
               narrowest != network_.links.end()) {
      because = fmt::format("with {} bytes/s on link {}", narrowest->bytes_per_second, narrowest->name);
    }
    refuse_late_moment(what, because);
  }

  bool is_stuck() const {
    for (std::int32_t instance = 0; instance < instances_; ++instance) {
      if (times_.end[instance] == kUnknown && kind(instance) != EventKind::kFollower) return true;
    }
    return false;
  }

  void begin_ready() {
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      if (tape_ != nullptr) tape_->now = ready_nodes_[i];
      begin(ready_[i]);
    }
    ready_.clear();
    ready_nodes_.clear();
  }

  void make_ready(std::int32_t instance) {
    ready_.push_back(instance);
    if (tape_ != nullptr) ready_nodes_.push_back(tape_->now);
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

  /// Returns the route of a message or a move.
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
    SimTime alone = program_.alone[action];
    if (draws_ != nullptr) alone = times_factor(alone, draws_->transfer(instance));
    if (alone == SimTime{0}) {
      end_transfer(instance);
    } else if (route == kNoRoute || !(program_.rate[action] > 0)) {
      events_.put(now_ + alone, instance, Happening::kEnd, 0, moment_after(tape_, numbers_.alone + action));
    } else {
      flows_.start({.id = instance,
                    .route = route,
                    .cap_bytes_per_second = program_.rate[action],
                    .alone = alone,
                    .alone_number = numbers_.alone + action,
                    .cap_number = numbers_.rate + action},
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
      stretches_run_.begin(instance, program_.stretches.plan_of[action], now_);
      return;
    }
    buckets_.clear();
    if (!program_.inside.empty())
      for_each_inside(instance, [&](std::int32_t reduction) { buckets_.push_back(reduction); });
    const ComputeWork work{.work = program_.alone[action],
                           .number = numbers_.alone + action,
                           .factor = draws_ == nullptr ? 1 : draws_->compute(instance)};
    if (!compute_.begin(instance, work, buckets_, now_)) ended(instance);
  }

  /// Visits the REDUCE_GRADs that start inside a compute action.
  template <typename Visit>
  void for_each_inside(std::int32_t host, Visit visit) const {
    const std::int32_t action = action_of(host);
    const std::size_t at = kWaits * static_cast<std::size_t>(action) + static_cast<std::size_t>(Wait::kInside);
    for (std::int32_t i = program_.first_successor[at]; i < program_.first_successor[at + 1]; ++i)
      visit(host - action + program_.successors[i]);
  }

  void complete_buckets(std::int32_t host, SimTime offset) {
    for_each_inside(host, [&](std::int32_t reduction) {
      if (program_.inside[action_of(reduction)] == offset) complete_bucket(reduction);
    });
  }

  void complete_bucket(std::int32_t reduction) {
    ++times_.events;
    if (--waits_[reduction] == 0) make_ready(reduction);
  }

  void end_flow(std::int32_t flow) {
    if (flow >= instances_) {
      stretches_run_.end_collective(flow - instances_, LaneKind::kBeside, now_);
    } else if (kind(flow) == EventKind::kCompute) {
      stretches_run_.end_collective(flow, LaneKind::kBlocking, now_);
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
    const std::int32_t action = action_of(instance);
    SimTime latency = program_.latency[action];
    if (draws_ != nullptr && latency > SimTime{0}) latency = delivery_of(instance);
    release(instance, Wait::kOccupied);
    if (latency > SimTime{0}) {
      events_.put(now_ + latency, instance, Happening::kDelivery, 0, moment_after(tape_, numbers_.latency + action));
    } else {
      delivered(instance);
    }
  }

  /// Returns a message's latency with noise: the time of its bytes and latency together less the time of its bytes.
  SimTime delivery_of(std::int32_t instance) const {
    const std::int32_t action = action_of(instance);
    const double factor = draws_->transfer(instance);
    return times_factor(program_.alone[action] + program_.latency[action], factor) -
           times_factor(program_.alone[action], factor);
  }

  void delivered(std::int32_t instance) {
    times_.end[instance] = now_;
    if (tape_ != nullptr && now_ > latest_) {
      latest_ = now_;
      tape_->last = tape_->now;
    }
    release(instance, Wait::kDelivered);
  }

  void happen(const Event& event) {
    if (compute_.is_outdated(event)) return;
    if (tape_ != nullptr) tape_->now = event.node;
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
        stretches_run_.end_collective(instance, LaneKind::kBlocking, now_);
        break;
      case Happening::kBeside:
        stretches_run_.end_collective(instance, LaneKind::kBeside, now_);
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
      stretches_run_.end_compute(instance, now_);
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
      if (--waits_[next] == 0) make_ready(next);
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
  DerivativeTape* tape_;
  const EventDraws* draws_;
  EventNumbering numbers_;
  StretchRun stretches_run_;
  std::int32_t instances_;
  std::vector<const Action*> actions_;             ///< [action]
  std::vector<std::int32_t> waits_;                ///< [instance]
  std::vector<std::int32_t> buckets_;              ///< buckets of the action that begins
  std::vector<std::int32_t> ready_;                ///< first in, first out
  std::vector<DerivativeTape::Node> ready_nodes_;  ///< moments of `ready_`; empty without a tape
  SimTime latest_{-1};                             ///< the latest end so far
  SimTime now_{0};
  EventTimes times_;
};

}  // namespace

EventTimes event_times(const Schedule& lowered, const EventProgram& program, const NetworkSpec& network, Sends sends,
                       const EventOptions& options) {
  return EventEngine(lowered, program, network, options).run(sends);
}

}}  // namespace plumb::simulator
