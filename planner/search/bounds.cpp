#include "planner/search/bounds.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plumb {
namespace {

SimTime cost_of(const CostTable& costs, Op op, std::size_t stage) {
  return duration_of(costs, {.op = op, .stage = static_cast<std::int32_t>(stage)});
}

bool splits_backward(const Schedule& order) {
  return std::ranges::any_of(order.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& action) { return action.op == Op::kInputGrad; });
  });
}

}  // namespace

SimTime step_time_lower_bound(const CostTable& costs, const Schedule& order, std::int64_t microbatches) {
  const bool split = splits_backward(order);
  int lanes = 1;
  for (const StagePlace& stage : order.stages) lanes = std::max(lanes, stage.lane + 1);

  std::vector<SimTime> work(order.ranks.size(), SimTime{0});
  std::vector<std::size_t> first_stage(order.ranks.size(), order.stages.size());
  for (std::size_t stage = 0; stage < order.stages.size(); ++stage) {
    const int rank = order.stages[stage].rank;
    if (lanes == 1) {  // with several, a micro-batch runs in one of them alone
      work[rank] += microbatches * (cost_of(costs, Op::kForward, stage) + cost_of(costs, Op::kBackward, stage));
    }
    if (first_stage[rank] == order.stages.size() ||
        order.stages[stage].model_part < order.stages[first_stage[rank]].model_part) {
      first_stage[rank] = stage;
    }
  }
  const auto last = [&](std::size_t stage) {
    const bool inside = !costs.stages[stage].bucket_offsets.empty();
    return (inside ? SimTime{0} : cost_of(costs, Op::kReduceGrad, stage)) + cost_of(costs, Op::kOptimizerStep, stage);
  };
  const StageNeighbors neighbors = stage_neighbors(order);
  SimTime bound{0};
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
    if (first_stage[rank] == order.stages.size()) continue;
    SimTime time = work[rank];
    std::size_t last_stage = first_stage[rank];
    for (int before = neighbors.predecessor[last_stage]; before >= 0; before = neighbors.predecessor[before]) {
      time += cost_of(costs, Op::kForward, before);
      if (split) continue;  // a rank's last weight gradient may run beside the input gradients of the parts before
      time += cost_of(costs, Op::kBackward, before);
      last_stage = static_cast<std::size_t>(before);
    }
    SimTime tail = last(last_stage);
    if (last_stage == first_stage[rank]) {  // the rank itself ends the step, with any of its stages
      for (std::size_t other = 0; other < order.stages.size(); ++other) {
        if (order.stages[other].rank == static_cast<int>(rank)) tail = std::min(tail, last(other));
      }
    }
    bound = std::max(bound, time + tail);
  }
  return bound;
}

std::vector<std::int64_t> memory_in_issue_order(const CostTable& costs, const Schedule& order) {
  std::vector<std::int64_t> peaks;
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
    std::int64_t held = 0;
    for (std::size_t stage = 0; stage < order.stages.size(); ++stage) {
      if (order.stages[stage].rank != static_cast<int>(rank)) continue;
      const StageMemory& memory = costs.stages[stage].memory;
      held += memory.parameter_bytes + memory.gradient_bytes + memory.optimizer_bytes;
    }
    std::int64_t peak = held;
    std::set<std::pair<int, int>> rebuilt;  // (stage, micro-batch) by R
    for (const Action& action : order.ranks[rank]) {
      const StageMemory& memory = costs.stages[action.stage].memory;
      const std::int64_t all = memory.forward_bytes + memory.recompute_bytes;
      switch (action.op) {
        case Op::kForward:
          held += memory.forward_bytes;
          peak = std::max(peak, held + memory.forward_workspace_bytes + memory.unsharded_bytes);
          break;
        case Op::kRecompute:
          held += memory.recompute_bytes;
          rebuilt.insert({action.stage, action.microbatch});
          peak = std::max(peak, held + memory.forward_workspace_bytes + memory.unsharded_bytes);
          break;
        case Op::kBackward:
        case Op::kInputGrad:
          if (!rebuilt.contains({action.stage, action.microbatch})) held += memory.recompute_bytes;
          peak = std::max(peak, held + memory.backward_workspace_bytes + memory.unsharded_bytes);
          held -= action.op == Op::kBackward ? all : memory.released_at_input_grad_bytes;
          break;
        case Op::kOffload:
          held -= memory.forward_bytes;
          break;
        case Op::kReload:
          held += memory.forward_bytes;
          break;
        case Op::kWeightGrad:
          peak = std::max(peak, held + memory.backward_workspace_bytes + memory.unsharded_bytes);
          held -= all - memory.released_at_input_grad_bytes;
          break;
        default:
          break;
      }
    }
    peaks.push_back(peak);
  }
  return peaks;
}

std::optional<MemoryShortfall> memory_shortfall(const std::vector<std::int64_t>& peak_bytes, const DeviceSpec& device) {
  const auto largest = std::ranges::max_element(peak_bytes);
  const std::int64_t available = device.memory_bytes - device.reserved_bytes;
  if (largest == peak_bytes.end() || *largest <= available) return std::nullopt;
  return MemoryShortfall{.rank = static_cast<int>(largest - peak_bytes.begin()),
                         .missing_bytes = *largest - available,
                         .available_bytes = available};
}

std::string to_text(const MemoryShortfall& shortfall) {
  constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
  return fmt::format("rank {} lacks {:.2f} GiB besides the {:.2f} GiB that a device has for tensors", shortfall.rank,
                     static_cast<double>(shortfall.missing_bytes) / kGibibyte,
                     static_cast<double>(shortfall.available_bytes) / kGibibyte);
}

}  // namespace plumb
