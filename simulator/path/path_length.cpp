#include "simulator/path/path_length.h"

#include <algorithm>

namespace plumb { inline namespace simulator {
namespace {

/// Returns duration_of (schedules/cost_table.h), not rounded.
Seconds seconds_of(const CostTable& costs, const Action& action) {
  Seconds blocking{0};
  Seconds beside{0};
  for (const Segment& segment : segments_of(costs, action)) (segment.beside ? beside : blocking) += segment.seconds;
  return std::max(blocking, beside);
}

/// Returns the duration of a collective of copies, which lasts as long as the longest of them.
Seconds reduction_of(const Schedule& lowered, const CostTable& costs, Action action) {
  const int model_part = lowered.stages[action.stage].model_part;
  Seconds longest{0};
  for (std::int32_t stage = 0; stage < static_cast<std::int32_t>(lowered.stages.size()); ++stage) {
    if (lowered.stages[stage].model_part != model_part) continue;
    action.stage = stage;
    longest = std::max(longest, seconds_of(costs, action));
  }
  return longest;
}

Seconds message_of(const Schedule& lowered, const StageNeighbors& neighbors, const CostTable& costs,
                   const CriticalStep& step, bool frees_channel) {
  const bool forward = step.action.op == Op::kSendActivation;
  const int reader = (forward ? neighbors.successor : neighbors.predecessor)[step.action.stage];
  const LinkCost& link = link_between(costs, step.rank, lowered.stages[reader].rank);
  const StageCosts& stage = costs.stages[step.action.stage];
  const auto bytes = static_cast<double>(forward ? stage.activation_message_bytes : stage.gradient_message_bytes);
  return Seconds{bytes / link.bytes_per_second} + (frees_channel ? Seconds{0} : link.latency);
}

}  // namespace

Seconds path_length(const Schedule& lowered, const CostTable& costs, const std::vector<CriticalStep>& path) {
  const StageNeighbors neighbors = stage_neighbors(lowered);
  Seconds length{0};
  for (std::size_t i = 0; i < path.size(); ++i) {
    const CriticalStep& step = path[i];
    const Op op = step.action.op;
    if (is_recv(op)) continue;  // the next step waits for its issue
    if (is_send(op)) {
      const bool frees_channel = i + 1 < path.size() && path[i + 1].reason == Reason::kChannel;
      length += message_of(lowered, neighbors, costs, step, frees_channel);
    } else if (i + 1 < path.size() && path[i + 1].action.op == Op::kReduceGrad && path[i + 1].start < step.end) {
      const Action& inside = path[i + 1].action;  // it starts at a bucket that is complete before its host has ended
      length += costs.stages[inside.stage].bucket_offsets.at(static_cast<std::size_t>(inside.part));
    } else if (op == Op::kReduceGrad) {
      length += reduction_of(lowered, costs, step.action);
    } else {
      const std::vector<Action>& actions = lowered.ranks[step.rank];
      length += seconds_of(costs, actions[step.position]);
      if (actions[step.position].overlaps_next) length += seconds_of(costs, actions[step.position + 1]);
    }
  }
  return length;
}

}}  // namespace plumb::simulator
