#include "simulator/sensitivity.h"

#include <algorithm>

namespace plumb {
namespace {

/// The share of an action's time that its computing takes; the rest is collectives that block it, or that run beside
/// it and outlast it.
double compute_share(const CostTable& costs, const Action& action) {
  double computing = 0;
  double blocking = 0;
  double beside = 0;
  for (const Segment& segment : segments_of(costs, action)) {
    const double seconds = segment.seconds.count();
    if (segment.kind == Segment::Kind::kCompute) {
      computing += seconds;
    } else {
      (segment.beside ? beside : blocking) += seconds;
    }
  }
  if (beside > computing + blocking) return 0;
  return computing + blocking > 0 ? computing / (computing + blocking) : 1;
}

/// What the step adds to the path: up to the start of the next one.
Seconds contribution(const std::vector<CriticalStep>& path, std::size_t i) {
  const SimTime until = i + 1 < path.size() ? path[i + 1].start : path[i].end;
  return to_seconds(until - path[i].start);
}

/// The two actions of an overlapped pair are one step, which lasts as long as both together.
void add_compute(Sensitivity& result, const Schedule& lowered, const CostTable& costs, const CriticalStep& step,
                 Seconds added) {
  const std::vector<Action>& actions = lowered.ranks[step.rank];
  const auto add = [&](const Action& action, Seconds seconds) {
    const double share = compute_share(costs, action);
    result.compute_by_stage[action.stage] += share * seconds;
    result.group_collectives += (1 - share) * seconds;
  };
  const std::size_t first = step.position;
  if (!actions[first].overlaps_next) return add(actions[first], added);
  const Seconds of_first = std::min(added, to_seconds(duration_of(costs, actions[first])));
  add(actions[first], of_first);
  add(actions[first + 1], added - of_first);
}

void add_message(Sensitivity& result, const Schedule& lowered, const CostTable& costs, const CriticalStep& step,
                 Seconds added) {
  const bool forward = step.action.op == Op::kSendActivation;
  const StageNeighbors neighbors = stage_neighbors(lowered);
  const int reader = (forward ? neighbors.successor : neighbors.predecessor)[step.action.stage];
  const LinkCost& link = link_between(costs, step.rank, lowered.stages[reader].rank);
  const StageCosts& stage = costs.stages[step.action.stage];
  const std::int64_t bytes = forward ? stage.activation_message_bytes : stage.gradient_message_bytes;
  // A step that frees its channel adds no latency: delivery is later.
  const Seconds occupied =
      std::min(added, to_seconds(to_sim_time(Seconds{static_cast<double>(bytes) / link.bytes_per_second})));
  result.bandwidth += occupied;
  result.latency += added - occupied;
}

}  // namespace

Sensitivity sensitivity_of(const Schedule& lowered, const CostTable& costs, const std::vector<CriticalStep>& path) {
  Sensitivity result{.compute_by_stage = std::vector<Seconds>(lowered.stages.size(), Seconds{0})};
  for (std::size_t i = 0; i < path.size(); ++i) {
    const CriticalStep& step = path[i];
    const Seconds added = contribution(path, i);
    const Op op = step.action.op;
    if (is_compute(op)) {
      add_compute(result, lowered, costs, step, added);
    } else if (is_send(op)) {
      add_message(result, lowered, costs, step, added);
    } else if (op == Op::kUnshard) {
      result.unshard += added;
    } else if (op == Op::kReduceGrad) {
      result.reduction += added;
    } else {
      result.moves += added;  // a receive adds nothing
    }
  }
  return result;
}

}  // namespace plumb
