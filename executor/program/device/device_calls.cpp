#include "executor/program/device/device_calls.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "executor/program/device/joint_calls.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/error.h"
#include "schedules/phases.h"

namespace plumb { inline namespace executor {
namespace {

DeviceStream device_stream_of(Op op) {
  switch (op) {
    case Op::kSendActivation:
      return DeviceStream::kSendActivation;
    case Op::kSendGradient:
      return DeviceStream::kSendGradient;
    case Op::kReduceGrad:
    case Op::kUnshard:
      return DeviceStream::kReduce;
    case Op::kOffload:
    case Op::kReload:
    case Op::kEvict:
    case Op::kLoad:
      return DeviceStream::kCopy;
    default:
      return DeviceStream::kCompute;
  }
}

/// Returns [action id] the action whose call does its work; -1 for actions that are no work of their rank's device.
std::vector<std::int32_t> workers_of(const Schedule& schedule, JointPasses passes) {
  const std::vector<std::int32_t> leaders = joint_leaders(schedule, passes);
  std::vector<std::int32_t> workers;
  for (const auto& actions : schedule.ranks) {
    bool after_first = false;
    for (const Action& action : actions) {
      const auto id = static_cast<std::int32_t>(workers.size());
      if (is_recv(action.op) || action.op == Op::kReshard) {
        workers.push_back(-1);
      } else if (after_first) {
        workers.push_back(workers.back());
      } else {
        workers.push_back(leaders[static_cast<std::size_t>(id)]);
      }
      after_first = action.overlaps_next;
    }
  }
  return workers;
}

/// The time for which a message's copy occupies its link, and the time by which it arrives later.
struct Copy {
  SimTime duration{0};
  SimTime latency{0};
};

Copy copy_of(const Schedule& schedule, const StageNeighbors& neighbors, const CostTable& costs, const Action& send) {
  const auto stage = static_cast<std::size_t>(send.stage);
  const bool forward = send.op == Op::kSendActivation;
  const int consumer = (forward ? neighbors.successor : neighbors.predecessor)[stage];
  const StageCosts& of_stage = costs.stages[stage];
  const std::int64_t bytes = forward ? of_stage.activation_message_bytes : of_stage.gradient_message_bytes;
  const LinkCost& link =
      link_between(costs, schedule.stages[stage].rank, schedule.stages[static_cast<std::size_t>(consumer)].rank);
  return {.duration =
              to_sim_time(Seconds{static_cast<double>(bytes) / link.bytes_per_second}, "a message on an emulated link"),
          .latency = to_sim_time(link.latency, "the latency of an emulated link")};
}

/// A dependency: the call `to` starts behind the end of an earlier call, or behind a moment inside it.
struct Edge {
  std::int32_t to = 0;  // action id
  int bucket = DeviceWait::kEnd;
  SimTime behind{0};  // delay from the earlier call's end, or from its start if a bucket is named
};

/// Plays the schedule on the streams, earliest call first.
class SchedulePlayer {
 public:
  SchedulePlayer(const Schedule& schedule, const CostTable& costs, bool agrees, JointPasses passes,
                 std::span<const MessagePair> pairs)
      : schedule_(schedule), costs_(costs), workers_(workers_of(schedule, passes)), nodes_(workers_.size()) {
    for (const MessagePair& pair : pairs) {
      nodes_[static_cast<std::size_t>(pair.sends[0])].mate = pair.sends[1];
      nodes_[static_cast<std::size_t>(pair.sends[1])].mate = pair.sends[0];
    }
    place_actions();
    add_dependencies();
    if (agrees) add_agreement();
  }

  DeviceCalls play() {
    using Ready = std::pair<SimTime, std::int32_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    std::size_t expected = 0;
    for (std::size_t id = 0; id < nodes_.size(); ++id) {
      if (workers_[id] != static_cast<std::int32_t>(id)) continue;
      ++expected;
      if (const auto own = static_cast<std::int32_t>(id); can_start(own) && leader(own) == own)
        ready.emplace(SimTime{0}, own);
    }
    DeviceCalls result{.of_action = std::vector<std::int32_t>(nodes_.size(), -1)};
    const auto make = [&](SimTime start, std::int32_t id) {
      Node& node = nodes_[static_cast<std::size_t>(id)];
      const auto call = static_cast<std::int32_t>(result.calls.size());
      result.of_action[static_cast<std::size_t>(id)] = call;
      result.calls.push_back({.action = id,
                              .rank = node.rank,
                              .stream = node.stream,
                              .waits = std::move(node.waits),
                              .with_next = node.mate >= 0 && leader(id) == id});
      result.starts.push_back(start);
      result.ends.push_back(start + node.duration);
      for (const Edge& edge : node.edges) {
        Node& next = nodes_[static_cast<std::size_t>(edge.to)];
        const bool inside = edge.bucket != DeviceWait::kEnd;
        const auto stand_behind = [&](Node& waiter) {
          if (inside || waiter.rank != node.rank || waiter.stream != node.stream)
            waiter.waits.push_back({.call = call, .bucket = edge.bucket});
          waiter.ready = std::max(waiter.ready, (inside ? start : result.ends.back()) + edge.behind);
        };
        stand_behind(next);
        if (next.mate >= 0) stand_behind(nodes_[static_cast<std::size_t>(next.mate)]);
        --next.missing;
        if (can_start(edge.to)) ready.emplace(next.ready, leader(edge.to));
      }
    };
    while (!ready.empty()) {
      const auto [start, id] = ready.top();
      ready.pop();
      make(start, id);
      if (const std::int32_t mate = nodes_[static_cast<std::size_t>(id)].mate; mate >= 0) make(start, mate);
    }
    if (result.calls.size() != expected)  // a valid schedule has a cycle only where copies gather their weights
      throw ScheduleError(
          "copies of a stage gather their weights in different orders, and a device would wait in a circle: list their "
          "UNSHARDs (layer by layer their passes) alike, or use --backend cpu");
    for (std::size_t id = 0; id < nodes_.size(); ++id) {
      if (workers_[id] >= 0) result.of_action[id] = result.of_action[static_cast<std::size_t>(workers_[id])];
    }
    return result;
  }

 private:
  struct Node {
    Action action;
    int rank = 0;
    DeviceStream stream = DeviceStream::kCompute;
    SimTime duration{0};
    SimTime latency{0};
    SimTime ready{0};
    int missing = 0;
    std::int32_t mate = -1;  // the message that starts with this one
    std::vector<Edge> edges;
    std::vector<DeviceWait> waits;
  };

  std::int32_t leader(std::int32_t id) const {
    const std::int32_t mate = nodes_[static_cast<std::size_t>(id)].mate;
    return mate < 0 ? id : std::min(id, mate);
  }
  bool can_start(std::int32_t id) const {
    const Node& node = nodes_[static_cast<std::size_t>(id)];
    return node.missing == 0 && (node.mate < 0 || nodes_[static_cast<std::size_t>(node.mate)].missing == 0);
  }

  void place_actions() {
    const StageNeighbors neighbors = stage_neighbors(schedule_);
    std::size_t id = 0;
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const auto first_of_rank = static_cast<std::int32_t>(id);
      std::vector<std::int32_t> last(kDeviceStreamCount, -1);
      const Action* paired = nullptr;  // the first action of the pair whose second comes now
      for (const Action& action : schedule_.ranks[rank]) {
        Node& node = nodes_[id];
        node.action = action;
        node.rank = static_cast<int>(rank);
        node.stream = device_stream_of(action.op);
        if (is_send(action.op)) {
          const Copy copy = copy_of(schedule_, neighbors, costs_, action);
          node.duration = copy.duration;
          node.latency = copy.latency;
        } else if (workers_[id] >= 0) {
          SimTime& duration = nodes_[static_cast<std::size_t>(workers_[id])].duration;
          const SimTime own = paired == nullptr ? duration_of(costs_, action)
                                                : pair_duration(costs_, *paired, action) - duration_of(costs_, *paired);
          const bool meets_others =
              action.op == Op::kReduceGrad || action.op == Op::kUnshard || workers_[id] < first_of_rank;
          duration = meets_others ? std::max(duration, own) : duration + own;
        }
        // A pass that meets the passes of other copies follows the order of each copy's rank.
        const bool is_own = workers_[id] == static_cast<std::int32_t>(id);
        if (is_own || (node.stream == DeviceStream::kCompute && workers_[id] >= 0)) {
          std::int32_t& before = last[static_cast<std::size_t>(node.stream)];
          if (before >= 0 && before != workers_[id]) connect(before, {.to = workers_[id]});
          before = workers_[id];
        }
        paired = action.overlaps_next ? &action : nullptr;
        ++id;
      }
    }
  }

  void add_dependencies() {
    for (Dependency dependency : dependencies(schedule_)) {
      if (is_order_of_joint_gathers(dependency, workers_)) continue;
      dependency.from = workers_[static_cast<std::size_t>(dependency.from)];
      dependency.to = workers_[static_cast<std::size_t>(dependency.to)];
      if (dependency.from < 0 || dependency.to < 0 || dependency.from == dependency.to) continue;
      Edge edge{.to = dependency.to};
      if (dependency.wait == Wait::kInside) {
        const Action& reduction = nodes_[static_cast<std::size_t>(dependency.to)].action;
        const std::vector<Seconds>& offsets = costs_.stages[static_cast<std::size_t>(reduction.stage)].bucket_offsets;
        const auto bucket = static_cast<std::size_t>(reduction.part);
        edge.bucket = reduction.part;
        edge.behind = bucket < offsets.size() ? to_sim_time(offsets[bucket])
                                              : nodes_[static_cast<std::size_t>(dependency.from)].duration;
      } else if (dependency.wait == Wait::kDelivered) {
        edge.behind = nodes_[static_cast<std::size_t>(dependency.from)].latency;
      }
      connect(dependency.from, edge);
    }
  }

  /// Makes each OPTIMIZER_STEP wait for the gradients of all ranks, and for their sums over copies.
  void add_agreement() {
    std::vector<std::int32_t> last = last_gradient_actions(schedule_);
    std::int32_t first_id = 0;
    for (const std::vector<Action>& actions : schedule_.ranks) {
      const auto first_step = std::ranges::find(actions, Op::kOptimizerStep, &Action::op);
      for (auto action = actions.begin(); action != first_step; ++action)
        if (action->op == Op::kReduceGrad)
          last.push_back(first_id + static_cast<std::int32_t>(action - actions.begin()));
      first_id += static_cast<std::int32_t>(actions.size());
    }
    for (std::size_t id = 0; id < nodes_.size(); ++id) {
      if (nodes_[id].action.op != Op::kOptimizerStep) continue;
      for (const std::int32_t from : last)
        if (from >= 0) connect(workers_[static_cast<std::size_t>(from)], {.to = static_cast<std::int32_t>(id)});
    }
  }

  void connect(std::int32_t from, const Edge& edge) {
    nodes_[static_cast<std::size_t>(from)].edges.push_back(edge);
    ++nodes_[static_cast<std::size_t>(edge.to)].missing;
  }

  const Schedule& schedule_;
  const CostTable& costs_;
  std::vector<std::int32_t> workers_;
  std::vector<Node> nodes_;  // [action id]
};

}  // namespace

std::vector<std::int32_t> last_gradient_actions(const Schedule& lowered) {
  std::vector<std::int32_t> last;
  std::int32_t id = 0;
  for (const std::vector<Action>& actions : lowered.ranks) {
    std::int32_t& own = last.emplace_back(-1);
    const auto first_step = std::ranges::find(actions, Op::kOptimizerStep, &Action::op);
    for (auto action = actions.begin(); action != first_step; ++action)
      if (is_compute(action->op)) own = id + static_cast<std::int32_t>(action - actions.begin());
    id += static_cast<std::int32_t>(actions.size());
  }
  return last;
}

DeviceCalls device_calls(const Schedule& lowered, const CostTable& costs, bool agrees, JointPasses passes,
                         std::span<const MessagePair> pairs) {
  return SchedulePlayer(lowered, costs, agrees, passes, pairs).play();
}

}}  // namespace plumb::executor
