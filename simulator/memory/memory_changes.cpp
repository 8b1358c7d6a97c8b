#include "simulator/memory/memory_changes.h"

#include <algorithm>
#include <utility>

#include "schedules/dependencies/weight_messages.h"
#include "schedules/liveness.h"
#include "schedules/weight_holders.h"
#include "simulator/memory/weight_versions.h"

namespace plumb { inline namespace simulator {
namespace {

/// Collects the bytes that every action takes and gives back, by rank.
class Collector {
 public:
  Collector(const Schedule& schedule, const ActionTable& table, const CostTable& costs, const ActionTimes& times)
      : schedule_(schedule),
        table_(table),
        costs_(costs),
        times_(times),
        changes_(schedule.ranks.size()),
        neighbors_(stage_neighbors(schedule)),
        with_state_(stages_with_state(schedule)),
        unsharded_(schedule.stages.size(), false),
        travelling_(schedule.stages.size()),
        has_backward_(stages_with_backward(schedule)),
        weights_(weight_holders(schedule)) {}

  std::vector<std::vector<MemoryChange>> collect() {
    collect_state();
    std::int32_t id = 0;
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      for (const Action& action : schedule_.ranks[r]) collect_action(r, action, id++);
    }
    collect_versions();
    for (auto& changes : changes_) {
      if (!std::ranges::is_sorted(changes, {}, &MemoryChange::time))
        std::ranges::stable_sort(changes, {}, &MemoryChange::time);
    }
    return std::move(changes_);
  }

 private:
  void collect_state() {
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(schedule_.stages.size()); ++s) {
      if (!with_state_[s] || !holds_state(weights_, s)) continue;
      const StageMemory& memory = costs_.stages[s].memory;
      auto& changes = changes_[schedule_.stages[s].rank];
      for (const auto& [kind, bytes] : {std::pair{MemoryKind::kParameters, memory.parameter_bytes},
                                        {MemoryKind::kGradients, memory.gradient_bytes},
                                        {MemoryKind::kOptimizer, memory.optimizer_bytes}}) {
        if (bytes != 0) changes.push_back({.bytes = bytes, .kind = kind, .stage = s});
      }
    }
  }

  void collect_action(std::size_t rank, const Action& action, std::int32_t id) {
    using enum MemoryKind;
    const StageMemory& memory = costs_.stages[action.stage].memory;
    const auto add_on = [&](std::size_t on, SimTime time, MemoryKind kind, std::int64_t bytes, int activations = 0) {
      if (bytes == 0 && activations == 0) return;
      changes_[on].push_back({.time = time,
                              .bytes = bytes,
                              .kind = kind,
                              .stage = action.stage,
                              .microbatch = action.microbatch,
                              .activations = activations});
    };
    const auto add = [&](SimTime time, MemoryKind kind, std::int64_t bytes, int activations = 0) {
      add_on(rank, time, kind, bytes, activations);
    };
    const auto run_with = [&](std::int64_t workspace_bytes) {
      add(times_.start[id], kWorkspace, workspace_bytes);
      add(times_.end[id], kWorkspace, -workspace_bytes);
    };
    const SimTime start = times_.start[id];
    const SimTime end = times_.end[id];
    const std::int64_t kept = memory.forward_bytes;
    const std::int64_t rebuilt = memory.recompute_bytes;
    const std::int64_t rebuilt_freed_early = std::min(rebuilt, memory.released_at_input_grad_bytes);
    const std::int64_t kept_freed_early = memory.released_at_input_grad_bytes - rebuilt_freed_early;
    const std::size_t partner = changes_.size() - 1 - rank;
    switch (with_or_without_weights(action.op, weights_[static_cast<std::size_t>(action.stage)] >= 0)) {
      case Op::kForward:
        add(start, kActivations, kept, 1);
        run_with(memory.forward_workspace_bytes);
        if (!has_backward_[action.stage]) add(end, kActivations, -kept, -1);
        break;
      case Op::kRecompute:
        add(start, kRecompute, rebuilt);
        run_with(memory.forward_workspace_bytes);
        break;
      case Op::kBackward:
        if (!has_recompute(action)) add(start, kRecompute, rebuilt);
        run_with(memory.backward_workspace_bytes);
        make_gradient(action, start, add);
        add(end, kRecompute, -rebuilt);
        add(end, kActivations, -kept, -1);
        break;
      case Op::kInputGrad:
        if (!has_recompute(action)) add(start, kRecompute, rebuilt);
        run_with(memory.backward_workspace_bytes);
        add(end, kRecompute, -rebuilt_freed_early);
        add(end, kActivations, -kept_freed_early);
        break;
      case Op::kWeightGrad:
        run_with(memory.backward_workspace_bytes);
        make_gradient(action, start, add);
        add(end, kRecompute, -(rebuilt - rebuilt_freed_early));
        add(end, kActivations, -(kept - kept_freed_early), -1);
        break;
      case Op::kUnshard:
        if (!unsharded_[action.stage]) add(start, kUnsharded, memory.unsharded_bytes);
        unsharded_[action.stage] = true;
        break;
      case Op::kReshard:
        if (unsharded_[action.stage]) add(end, kUnsharded, -memory.unsharded_bytes);
        unsharded_[action.stage] = false;
        add(end, kUnsharded, -std::exchange(travelling_[action.stage].weight_bytes, 0));
        break;
      case Op::kRecvWeights:
        add(start, kUnsharded, memory.parameter_bytes);
        travelling_[action.stage].weight_bytes += memory.parameter_bytes;
        break;
      case Op::kRecvWeightGrad:
        add(start, kCommunication, memory.gradient_bytes);
        if (with_state_[action.stage]) {
          add(end, kCommunication, -memory.gradient_bytes);
        } else {
          travelling_[action.stage].gradient_bytes += memory.gradient_bytes;
        }
        break;
      case Op::kSendWeightGrad:
        add(end, kCommunication, -std::exchange(travelling_[action.stage].gradient_bytes, 0));
        break;
      case Op::kOffload:
        add(end, kActivations, -kept, -1);
        break;
      case Op::kReload:
        add(start, kActivations, kept, 1);
        break;
      case Op::kRecvActivation:
      case Op::kRecvGradient: {
        const std::int32_t consumer = consumer_of(action);
        const std::int64_t received = received_bytes(costs_, neighbors_, action);
        add(start, kCommunication, received);
        add(consumer == ActionTable::kNone ? end : times_.start[consumer], kCommunication, -received);
        break;
      }
      case Op::kEvict:
        add(end, kActivations, -kept, -1);
        add_on(partner, start, kActivations, kept, 1);
        break;
      case Op::kLoad:
        add(start, kActivations, kept, 1);
        add_on(partner, end, kActivations, -kept, -1);
        break;
      default:
        break;
    }
  }

  /// A stage that has no state of its own holds the gradient of its weights until it hands it on.
  template <typename Add>
  void make_gradient(const Action& action, SimTime start, const Add& add) {
    Travelling& stage = travelling_[action.stage];
    if (with_state_[action.stage] || stage.gradient_bytes != 0) return;
    stage.gradient_bytes = costs_.stages[action.stage].memory.gradient_bytes;
    add(start, MemoryKind::kCommunication, stage.gradient_bytes);
  }

  /// Returns the action that reads the message that a RECV takes, or kNone.
  std::int32_t consumer_of(const Action& receive) const {
    const auto find = [&](Op op) { return table_.find(op, receive.stage, receive.microbatch, receive.part); };
    if (receive.op == Op::kRecvActivation) return find(Op::kForward);
    const std::int32_t whole = find(Op::kBackward);
    return whole == ActionTable::kNone ? find(Op::kInputGrad) : whole;
  }

  bool has_recompute(const Action& action) const {
    return table_.find(Op::kRecompute, action.stage, action.microbatch, action.part) != ActionTable::kNone;
  }

  void collect_versions() {
    const auto extra = extra_versions(schedule_);
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(extra.size()); ++s) {
      const std::int64_t bytes = costs_.stages[s].memory.parameter_bytes;
      auto& changes = changes_[schedule_.stages[s].rank];
      for (const ExtraVersion& version : extra[s]) {
        const auto kind = MemoryKind::kWeightVersions;
        changes.push_back({.time = times_.start[version.born], .bytes = bytes, .kind = kind, .stage = s});
        changes.push_back({.time = times_.end[version.dies], .bytes = -bytes, .kind = kind, .stage = s});
      }
    }
  }

  const Schedule& schedule_;
  const ActionTable& table_;
  const CostTable& costs_;
  const ActionTimes& times_;
  std::vector<std::vector<MemoryChange>> changes_;
  StageNeighbors neighbors_;
  std::vector<bool> with_state_;
  std::vector<bool> unsharded_;
  /// The bytes that a rank holds of weights and gradients that travel.
  struct Travelling {
    std::int64_t weight_bytes = 0;
    std::int64_t gradient_bytes = 0;
  };
  std::vector<Travelling> travelling_;
  std::vector<bool> has_backward_;
  std::vector<int> weights_;
};

}  // namespace

std::int64_t received_bytes(const CostTable& costs, const StageNeighbors& neighbors, const Action& receive) {
  const bool forward = receive.op == Op::kRecvActivation;
  const int sender = (forward ? neighbors.predecessor : neighbors.successor)[receive.stage];
  if (sender < 0) return 0;
  const StageCosts& stage = costs.stages[sender];
  return forward ? stage.activation_message_bytes : stage.gradient_message_bytes;
}

std::vector<std::vector<MemoryChange>> memory_changes(const Schedule& schedule, const ActionTable& table,
                                                      const CostTable& costs, const ActionTimes& times) {
  return Collector(schedule, table, costs, times).collect();
}

}}  // namespace plumb::simulator
