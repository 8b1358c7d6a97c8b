#include <algorithm>

#include "schedules/weight_holders.h"
#include "simulator/memory/memory.h"
#include "simulator/memory/memory_changes.h"

namespace plumb { inline namespace simulator {
namespace {

void add_action(KindMemory& kind, Op op, bool recomputed, const StageMemory& memory, bool has_backward) {
  const std::int64_t whole = memory.forward_bytes + memory.recompute_bytes;
  switch (op) {
    case Op::kForward:
      kind.taken_bytes += memory.forward_bytes + memory.forward_workspace_bytes;
      kind.taken_activations += 1;
      kind.returned_bytes += memory.forward_workspace_bytes + (has_backward ? 0 : memory.forward_bytes);
      kind.returned_activations += has_backward ? 0 : 1;
      break;
    case Op::kRecompute:
      kind.taken_bytes += memory.recompute_bytes + memory.forward_workspace_bytes;
      kind.returned_bytes += memory.forward_workspace_bytes;
      break;
    case Op::kBackward:
      kind.taken_bytes += (recomputed ? 0 : memory.recompute_bytes) + memory.backward_workspace_bytes;
      kind.returned_bytes += memory.backward_workspace_bytes + whole;
      kind.returned_activations += 1;
      break;
    case Op::kInputGrad:
      kind.taken_bytes += (recomputed ? 0 : memory.recompute_bytes) + memory.backward_workspace_bytes;
      kind.returned_bytes += memory.backward_workspace_bytes + memory.released_at_input_grad_bytes;
      break;
    case Op::kWeightGrad:
      kind.taken_bytes += memory.backward_workspace_bytes;
      kind.returned_bytes += memory.backward_workspace_bytes + whole - memory.released_at_input_grad_bytes;
      kind.returned_activations += 1;
      break;
    default:
      break;
  }
  kind.changes = kind.taken_bytes != 0 || kind.returned_bytes != 0 || kind.taken_activations != 0 ||
                 kind.returned_activations != 0;
}

std::vector<bool> stages_with_backward(const Schedule& schedule, const CompiledSchedule& compiled) {
  std::vector<bool> has_backward(schedule.stages.size(), false);
  for (const StepKind& kind : compiled.kinds) {
    for (const Action& action : kind.actions) {
      if (gives_input_gradient(action.op)) has_backward[action.stage] = true;
    }
  }
  return has_backward;
}

/// Returns the bytes of messages from another rank that an action reads.
std::int64_t consumed_bytes(const Schedule& schedule, const StageNeighbors& neighbors, const CostTable& costs,
                            const Action& action) {
  const bool forward = action.op == Op::kForward;
  if (!forward && !gives_input_gradient(action.op)) return 0;
  const int sender = (forward ? neighbors.predecessor : neighbors.successor)[action.stage];
  if (sender < 0 || schedule.stages[sender].rank == schedule.stages[action.stage].rank) return 0;
  return received_bytes(costs, neighbors,
                        {.op = forward ? Op::kRecvActivation : Op::kRecvGradient, .stage = action.stage});
}

/// The receives of each rank, in the order in which they are issued.
class Receives {
 public:
  Receives(const Schedule& schedule, const CostTable& costs)
      : schedule_(schedule), costs_(costs), neighbors_(stage_neighbors(schedule)), next_(schedule.ranks.size(), 0) {}

  /// Returns the bytes of the receives that stand ahead of the rank's next compute step, and passes that step of
  /// `actions` actions.
  std::int64_t issued_bytes(int rank, std::size_t actions) {
    const std::vector<Action>& row = schedule_.ranks[rank];
    std::size_t& next = next_[rank];
    std::int64_t bytes = 0;
    for (; next < row.size() && !is_compute(row[next].op); ++next) {
      if (is_recv(row[next].op)) bytes += received_bytes(costs_, neighbors_, row[next]);
    }
    next += actions;
    return bytes;
  }

 private:
  const Schedule& schedule_;
  const CostTable& costs_;
  StageNeighbors neighbors_;
  std::vector<std::size_t> next_;  ///< [rank] position
};

/// The memory of one rank while its steps pass by. A moment ends when time goes on, and the bytes held then count.
struct Holder {
  SimTime now{0};
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;
  int activations = 0;
  int peak_activations = 0;

  void move_to(SimTime time) {
    if (time != now) peak_bytes = std::max(peak_bytes, bytes);
    now = time;
  }
};

}  // namespace

bool holds_in_issue_order(const Schedule& schedule, const CompiledSchedule& compiled, const CostTable& costs) {
  if (is_asynchronous(schedule)) return false;
  return std::ranges::none_of(compiled.kinds, [&](const StepKind& kind) {
    if (kind.actions.empty()) return false;
    const Action& action = kind.actions.front();
    if (action.op >= Op::kOffload) return true;
    const StageMemory& memory = costs.stages[action.stage].memory;
    if (is_weight_message(action.op)) return memory.parameter_bytes != 0 || memory.gradient_bytes != 0;
    const bool gathers = action.op == Op::kUnshard || action.op == Op::kReshard;
    return gathers && memory.unsharded_bytes != 0;
  });
}

std::vector<KindMemory> memory_by_kind(const Schedule& schedule, const CompiledSchedule& compiled,
                                       const CostTable& costs, const std::vector<StepCost>& step_costs) {
  const std::vector<bool> has_backward = stages_with_backward(schedule, compiled);
  const std::vector<int> weights = weight_holders(schedule);
  const StageNeighbors neighbors = stage_neighbors(schedule);
  std::vector<KindMemory> kinds;
  for (std::size_t k = 0; k < compiled.kinds.size(); ++k) {
    const StepKind& kind = compiled.kinds[k];
    KindMemory memory{.rank = kind.rank, .duration = step_costs[k].duration};
    for (std::size_t i = 0; i < kind.actions.size() && kind.occupies_rank; ++i) {
      const Action& action = kind.actions[i];
      add_action(memory, with_or_without_weights(action.op, weights[action.stage] >= 0), kind.recomputed[i],
                 costs.stages[action.stage].memory, has_backward[action.stage]);
      memory.consumed_bytes += consumed_bytes(schedule, neighbors, costs, action);
    }
    kinds.push_back(memory);
  }
  return kinds;
}

std::vector<RankMemory> peaks_by_rank(const Schedule& schedule, const CompiledSchedule& compiled,
                                      const CostTable& costs, const std::vector<StepCost>& step_costs,
                                      const StepTimes& times) {
  std::vector<Holder> holders(schedule.ranks.size());
  const std::vector<int> weights = weight_holders(schedule);
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    if (!holds_state(weights, static_cast<int>(s))) continue;
    const StageMemory& memory = costs.stages[s].memory;
    holders[schedule.stages[s].rank].bytes += memory.parameter_bytes + memory.gradient_bytes + memory.optimizer_bytes;
  }
  const std::vector<KindMemory> kinds = memory_by_kind(schedule, compiled, costs, step_costs);
  const bool receives_any = std::ranges::any_of(kinds, [](const KindMemory& kind) { return kind.consumed_bytes != 0; });
  Receives receives(schedule, costs);
  for (std::size_t i = 0; i < compiled.steps.size(); ++i) {
    const std::uint32_t number = compiled.steps[i].kind;
    const KindMemory& kind = kinds[number];
    if (!kind.changes && !(receives_any && compiled.kinds[number].occupies_rank)) continue;
    Holder& holder = holders[kind.rank];
    if (receives_any) holder.bytes += receives.issued_bytes(kind.rank, compiled.kinds[number].actions.size());
    holder.move_to(times.start[i]);
    holder.bytes -= kind.consumed_bytes;
    holder.bytes += kind.taken_bytes;
    holder.activations += kind.taken_activations;
    holder.peak_activations = std::max(holder.peak_activations, holder.activations);
    holder.move_to(times.start[i] + kind.duration);
    holder.bytes -= kind.returned_bytes;
    holder.activations -= kind.returned_activations;
  }
  std::vector<RankMemory> ranks;
  for (Holder& holder : holders) {
    ranks.push_back(
        {.peak_bytes = std::max(holder.peak_bytes, holder.bytes), .peak_activations = holder.peak_activations});
  }
  return ranks;
}

}}  // namespace plumb::simulator
